"""Changing a graph whole or not at all: what it was is kept, so that it can be put back."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import Any

from torch.fx import Graph, Node

from ..ops.schema import is_operator, schema_of
from .collective import is_collective


class Journal:
    """A graph as it is now: its nodes, their order, arguments and notes.

    Nodes may be inserted, moved and changed afterwards; as long as none is erased, all can be put back.

    Args:
        graph: the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._before: list[tuple[Node, Any, Any, dict[str, Any]]] = [
            (n, n.args, n.kwargs, dict(n.meta)) for n in graph.nodes
        ]

    def restore(self) -> None:
        """Put the graph back as it was."""
        known = {node for node, *_ in self._before}
        for node, args, kwargs, meta in self._before:
            node.args, node.kwargs = args, kwargs
            node.meta.clear()
            node.meta.update(meta)
        for node in reversed(list(self._graph.nodes)):
            if node not in known:
                self._graph.erase_node(node)
        for (node, *_), (following, *_) in itertools.pairwise(self._before):
            if node.next is not following:
                node.append(following)


def erase(graph: Graph, dead: Iterable[Node]) -> None:
    """Erase nodes without users, users before what they use, and the views that only they used."""
    pending = list(dead)
    known = set(pending)
    while pending:
        node = pending.pop()
        operands = node.all_input_nodes
        graph.erase_node(node)
        for operand in operands:
            if not operand.users and operand not in known and _is_unused_view(operand):
                known.add(operand)
                pending.append(operand)


def _is_unused_view(node: Node) -> bool:
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return True
    # The wait for a collective ends the write into its buffer: needed even when nobody uses its result.
    return is_operator(node.target) and schema_of(node.target).view and not is_collective(node.target)
