"""When nodes of a graph run, forward and backward in one graph or not.

A joint graph is cut in two after us. What only the backward needs runs after all that the forward does, wherever
it stands: after the epilogues that write inputs, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch.fx import Graph, Node

from ...graph.alias import written


class Times:
    """The order in which the nodes of a graph run.

    Args:
        graph: any graph; one that computes gradients has inputs that are called ``tangents``.
    """

    def __init__(self, graph: Graph) -> None:
        self._order = {node: i for i, node in enumerate(graph.nodes)}
        self._late = _only_backward(graph)

    def of(self, node: Node) -> int:
        """Return when a node runs, as a number to compare."""
        return self._order[node] + (len(self._order) if node in self._late else 0)

    def is_late(self, node: Node) -> bool:
        """Return whether only the backward needs a node."""
        return node in self._late

    def needed_late(self) -> set[Node]:
        """Return what the backward is computed from, itself included."""
        return _reached(self._late, lambda node: node.all_input_nodes)


def _only_backward(graph: Graph) -> set[Node]:
    tangents = [n for n in graph.find_nodes(op="placeholder") if "tangents" in str(n.target)]
    if not tangents:
        return set()
    backward = _reached(tangents, lambda node: node.users)
    output = next(n for n in reversed(graph.nodes) if n.op == "output")
    ends = [n for n in graph.nodes if (output in n.users or written(n)) and n not in backward]
    forward = _reached(ends, lambda node: node.all_input_nodes)
    return {n for n in graph.nodes if n.op == "call_function" and n not in forward}


def _reached(start: Iterable[Node], neighbours: Callable[[Node], Iterable[Node]]) -> set[Node]:
    found, pending = set(start), list(start)
    while pending:
        fresh = [n for n in neighbours(pending.pop()) if n not in found]
        found.update(fresh)
        pending += fresh
    return found
