"""When nodes of a graph run, forward and backward in one graph or not.

A joint graph is cut in two after us. What only the backward needs runs after all that the forward does,
wherever it stands: after the epilogues that write inputs, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch.fx import Graph, Node

from ..graph.alias import written


class Times:
    """The order in which the nodes of a graph run.

    Args:
        graph: any graph.
        is_joint: whether it is still to be cut, if it computes gradients: then it has inputs that are
            called ``tangents``.
    """

    def __init__(self, graph: Graph, *, is_joint: bool = True) -> None:
        self.order: dict[Node, int] = {node: i for i, node in enumerate(graph.nodes)}
        given = graph.find_nodes(op="placeholder") if is_joint else ()
        tangents = [n for n in given if "tangents" in str(n.target)]
        self._backward = _reached(tangents, lambda node: node.users)
        self._late = self._needed_late(graph) if tangents else set[Node]()

    def _needed_late(self, graph: Graph) -> set[Node]:
        """Return what no output and no write that is computed without gradients needs."""
        ends = [*graph.output_node().all_input_nodes, *filter(written, graph.nodes)]
        forward = _reached((n for n in ends if n not in self._backward), lambda node: node.all_input_nodes)
        return {n for n in graph.nodes if n.op == "call_function"} - forward

    def of(self, node: Node) -> int:
        """Return when a node runs at the latest, as a number to compare."""
        return self.order[node] + (len(self.order) if node in self._late else 0)

    def is_late(self, node: Node) -> bool:
        """Return whether only the backward needs a node."""
        return node in self._late

    def is_gradient(self, node: Node) -> bool:
        """Return whether a node is computed of what the backward is given."""
        return node in self._backward

    def handed_over(self) -> set[Node]:
        """Return what the backward needs and the forward could compute."""
        return _reached(self._late, lambda node: node.all_input_nodes) - self._backward


def _reached(start: Iterable[Node], neighbours: Callable[[Node], Iterable[Node]]) -> set[Node]:
    found = set(start)
    pending = list(found)
    while pending:
        fresh = [n for n in neighbours(pending.pop()) if n not in found]
        found.update(fresh)
        pending += fresh
    return found
