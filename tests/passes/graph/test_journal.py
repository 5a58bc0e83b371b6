"""A graph is put back as it was, erased nodes included."""

from __future__ import annotations

import torch
from torch.fx import Graph

from pytest_reinplace.passes.graph.journal import Journal, erase

aten = torch.ops.aten


def made() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    one = graph.call_function(aten.slice.Tensor, (x, 0, 1, 3))
    two = graph.call_function(aten.neg.default, (one,))
    graph.output((two, one))
    for i, node in enumerate(graph.nodes):
        node.meta["number"] = i
    return graph


def shown(graph: Graph) -> list[tuple[str, str, dict[str, int]]]:
    return [(n.name, str(n.format_node()), dict(n.meta)) for n in graph.nodes]


def test_what_was_erased_changed_moved_and_inserted_is_undone() -> None:
    graph = made()
    before, journal = shown(graph), Journal(graph)
    x, one, two, output = graph.nodes
    two.target = aten.abs.default
    two.meta["more"] = 1
    with graph.inserting_before(one):
        new = graph.call_function(aten.neg.default, (x,))
    output.args = ((new, new),)
    erase(graph, [two])
    assert len(list(graph.nodes)) == 3  # and the view, which nobody uses
    journal.restore()
    assert shown(graph) == before
    graph.lint()


def test_a_graph_that_did_not_change_has_the_same_nodes() -> None:
    """The twin: only what was erased is another node."""
    graph = made()
    nodes, journal = list(graph.nodes), Journal(graph)
    journal.restore()
    assert list(graph.nodes) == nodes
