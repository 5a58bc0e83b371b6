"""Changing a graph whole or not at all: what it was is kept, so that it can be put back."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import Any

from torch.fx import Graph, Node
from torch.fx.node import map_arg

from ..ops.schema import is_operator, schema_of
from .collective import is_collective

# A node as it was: op, target, name, arguments and notes. A plain tuple: each node makes one.
_Entry = tuple[Node, str, Any, str, Any, Any, dict[str, Any]]


class Journal:
    """A graph as it is now: its nodes, their order, targets, arguments and notes.

    Nodes may be inserted, moved, changed and erased afterwards: all can be put back. For one that was erased
    another one is made, alike to the name.

    Args:
        graph: the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._before: list[_Entry] = [
            (n, n.op, n.target, n.name, n.args, n.kwargs, dict(n.meta)) for n in graph.nodes
        ]

    def restore(self) -> None:
        """Put the graph back as it was."""
        left = set(self._graph.nodes)
        made = {
            node: self._made_again(op, target, name)
            for node, op, target, name, *_ in self._before
            if node not in left
        }
        nodes = [made.get(entry[0], entry[0]) for entry in self._before]
        for node, (_, _, target, _, args, kwargs, meta) in zip(nodes, self._before, strict=True):
            if node.target is not target:
                node.target = target
            if made:
                args, kwargs = map_arg((args, kwargs), lambda n: made.get(n, n))
            node.args, node.kwargs = args, kwargs
            node.meta.clear()
            node.meta.update(meta)
        known = set(nodes)
        for node in reversed(list(self._graph.nodes)):
            if node not in known:
                self._graph.erase_node(node)
        for node, following in itertools.pairwise(nodes):
            if node.next is not following:
                node.append(following)

    def _made_again(self, op: str, target: Any, name: str) -> Node:
        node = self._graph.create_node(op, target, name=name)
        node.name = name  # nobody has it, and the graph would number it
        return node


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
