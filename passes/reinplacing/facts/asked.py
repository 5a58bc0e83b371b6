"""What is asked of where a value begins: by offsets that name its bytes, by views of other dtypes, by number.

An offset into the storage is moved along with the bytes that it names, by whole items. A view of another
dtype needs a beginning that its item size divides, and who asks for the offset itself must get the same one.
All are asked of a value itself and of whatever may come to lie in its bytes, so one walk from the last node
to the first finds them for all values.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node

from ...graph.spread import Names, spread
from ...ops.beginning import ASKING, EXACT, RETYPING, hands_on
from ...ops.in_place_form import in_place_form
from ...ops.schema import argument, is_operator, schema_of, tensors
from ...ops.true_strides import is_mistold, may_be_mistold
from ...ops.views import INDEX_PUT, VIEWS, absolute, is_absolute

aten: Any = torch.ops.aten
_WIDEST = 16  # bytes of the largest dtype


class Addressing:
    """For each node, in bytes, what its value's beginning must be a multiple of; 0 where nothing is asked.

    Args:
        nodes: all nodes of a graph, in any order in which operands come first.
        lying: the names of those whose strides are others than is told, where other graphs were asked, too.
    """

    def __init__(self, nodes: Iterable[Node], lying: Collection[str] = ()) -> None:
        nodes = list(nodes)
        self.named: dict[Node, int] = {}
        self.viewed: dict[Node, int] = {}
        addressing = _addressing()
        few = [n for n in nodes if id(n.target) in addressing]  # none, in most graphs
        named = {n: _itemsize(n) for n in few if is_absolute(n)}
        asking = {n: asked for n in few if (asked := ASKING.get(id(n.target)))}
        retyped = {n: _itemsize(n) for n in few if id(n.target) in RETYPING}
        viewed = retyped | asking
        keeping = _keeping(nodes) if named or viewed else set()
        _spread(nodes, named, keeping, self.named)
        # A functional copy begins where its first operand does, and offsets into it are not moved along.
        viewed.update((n, EXACT) for n in self.named if n.target is aten.copy.default)
        _spread(nodes, viewed, keeping, self.viewed)
        self.has_names: bool = bool(named)
        # Values whose strides are not those of their fake tensors.
        self.untold: frozenset[Node] = frozenset([n for n in nodes if n.name in lying] or untold(nodes))
        # What offsets name by strides that are not the real ones depends on what a copy keeps of these, so
        # that nothing on the way may be another copy than it was.
        self.lying: frozenset[Node] = frozenset(
            [n for n in self.untold if n in named or n in self.named] + _of_untold(nodes, self.untold)
        )
        self.has_dtype_views: bool = bool(viewed)
        # What all strides must be multiples of, also those of dimensions of one: larger items that are made.
        units = [EXACT if n in asking else item for n, item in viewed.items() if n in asking or _enlarges(n)]
        self.unit: int = max(units, default=0)
        self.has_beginnings: bool = bool(named or retyped) or EXACT in asking.values()

    def names(self, node: Node) -> int:
        """Return the largest item of a node's value that is named by an offset into its storage."""
        return self.named.get(node, 0)

    def begins(self, node: Node) -> bool:
        """Return whether anybody goes by the very offset at which a node's value begins."""
        return self.names(node) > 0 or self.views(node) == EXACT

    def views(self, node: Node) -> int:
        """Return the largest item that a view of another dtype makes of a node's value.

        It is 1 where only strides are asked for, and larger than any offset where the offset is.
        """
        return self.viewed.get(node, 0)


def _enlarges(node: Node) -> bool:
    """Return whether a view of another dtype has larger items: all strides must be multiples of them."""
    operands = node.all_input_nodes if id(node.target) in RETYPING else ()
    return any(_itemsize(node) > _itemsize(operand) for operand in operands)


def _addressing() -> set[int]:
    """Return the targets, by their identity, whose nodes may ask something of where a value begins."""
    return {*ASKING, *RETYPING, *map(id, absolute())}


def untold(nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes whose strides come from an operator that gives others than its fake tensor says.

    What is made of them has strides by theirs, so that those are not told, either.
    """
    nodes, found = list(nodes), set[Node]()
    for node in nodes if _may_lie(nodes) else ():
        if _is_like_untold(node, found):
            found.add(node)
    return found


def untold_in(graphs: Sequence[Graph]) -> Names:
    """Return the names of such nodes in a graph and in all those that it calls, where it calls any."""
    if len(graphs) == 1 or not any(_may_lie(graph.nodes) for graph in graphs):
        return {}
    return spread(graphs, _is_like_untold)


def _may_lie(nodes: Iterable[Node]) -> bool:
    return any(may_be_mistold(target) for target in {id(n.target): n.target for n in nodes}.values())


def _is_like_untold(node: Node, found: set[Node]) -> bool:
    return is_mistold(node) or (bool(found) and not found.isdisjoint(_laid_out_by(node)))


def _of_untold(nodes: Iterable[Node], lying: Collection[Node]) -> list[Node]:
    """Return what may make a copy of a value whose strides are not told, or of a part of it, with others.

    What keeps strides keeps those of all of it, whichever these are: it is dense. A copy of a part has
    strides with gaps, or without, by what the graph says, and so has a copy in a format of its own.
    """
    parts: set[Node] = set()
    found: list[Node] = []
    for node in nodes if lying else ():
        schema = schema_of(node.target) if is_operator(node.target) else None
        is_like_first = schema is not None and (schema.name in VIEWS or schema.name in INDEX_PUT)
        operands = {node.args[0]} if is_like_first and node.args else set(_laid_out_by(node))
        is_part = schema is not None and schema.view and not schema.returns_operand and not _is_whole(node)
        of_part, of_lying = not operands.isdisjoint(parts), not operands.isdisjoint(lying)
        if of_part or (is_part and of_lying):
            parts.add(node)
        if (schema is not None and schema.view) or node.target is operator.getitem:
            continue
        if of_part or (of_lying and schema is not None and not _keeps_strides(node)):
            found.append(node)
    return found


def _is_whole(node: Node) -> bool:
    """Return whether a view has as many elements as its operand: one that may be written has all of them."""
    both = [t.shape.numel() for n in (node, *node.all_input_nodes[:1]) for t in tensors(n.meta.get("val"))]
    return len(both) == 2 and all(isinstance(n, int) for n in both) and both[0] == both[1]


def _keeps_strides(node: Node) -> bool:
    """Return whether a call's result has its operand's strides, or there is nothing in place about it."""
    name = schema_of(node.target).name
    if name == "aten::clone":
        return argument(node, "memory_format") in (None, torch.preserve_format)
    return name in INDEX_PUT or name in VIEWS or in_place_form(node.target) is None


def _laid_out_by(node: Node) -> Iterable[Any]:
    """Return the operands that the strides of a call's results may go by."""
    bases = node.kwargs.get("_all_bases")
    op = node.args[0] if node.args else None
    if not isinstance(bases, list | tuple) or not is_operator(op) or schema_of(op).makes_tensor:
        return node.all_input_nodes
    return bases


def _spread(nodes: list[Node], asked: dict[Node, int], keeping: set[Node], found: dict[Node, int]) -> None:
    for node in reversed(nodes) if asked else ():
        wanted, inherited = asked.get(node, 0), found.get(node, 0)
        if inherited > wanted and node in keeping:
            wanted = inherited
        if wanted:
            for operand in node.all_input_nodes:
                found[operand] = max(found.get(operand, 0), wanted)


def _keeping(nodes: list[Node]) -> set[Node]:
    """Return the nodes whose values may lie in their operands' bytes, or begin where these do."""
    calls = [n for n in nodes if n.op == "call_function"]
    targets = {id(n.target): n.target for n in calls}
    handing = {key for key, target in targets.items() if hands_on(target)}
    return {n for n in calls if id(n.target) in handing}


def _itemsize(node: Node) -> int:
    return max([t.element_size() for t in tensors(node.meta.get("val"))], default=_WIDEST)
