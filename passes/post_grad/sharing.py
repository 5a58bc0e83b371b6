"""Which values of a graph share storage, what happens to it, and whether a copy may share it, too."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.fx import Graph, Node

from .. import _torch
from ..graph.alias import bases, written
from ..graph.summary import Summaries
from ..ops.higher_order import call_of
from ..ops.schema import is_operator, traits_of
from ..ops.wrapper import operands
from ..ops.wrapper_names import is_wrapper
from .times import Times

aten: Any = torch.ops.aten


@dataclasses.dataclass(slots=True)
class _Storage:
    """What is known of the values that share a storage.

    Args:
        is_given: whether an input is among them, or what an epilogue stores, which may become the input.
        is_returned: whether an output is, or what is written when the graph has ended.
        read: when one of them is read last.
        writes: when one of them is written.
        may_write: when one of them may be written in place, and by what.
        copied: when one of them would have to be copied for that, were it still wanted.
        into: the storage that they share by now instead.
    """

    is_given: bool = False
    is_returned: bool = False
    read: float = -1
    writes: list[int] = dataclasses.field(default_factory=list)
    may_write: list[tuple[int, Node]] = dataclasses.field(default_factory=list)
    copied: list[int] = dataclasses.field(default_factory=list)
    into: _Storage | None = None

    def is_seen_with(self, copy: _Storage) -> bool:
        """Return whether somebody outside could tell that a copy shares this storage."""
        return copy.is_returned and (self.is_returned or self.is_given)

    def is_spoiled_for(self, copy: _Storage, since: int, is_beside: Callable[[Node], bool]) -> bool:
        """Return whether a copy, made at some time, is still wanted when this is written, or may be.

        What may be is written in place only where nobody wants the old values but by the copy. Who stores the
        copy itself does not spoil it if that is made of what ``is_beside`` the bytes which it writes.
        """
        if copy.writes or any(since < at <= copy.read for at in self.writes):
            return True
        stays = self.is_returned or (self.is_given and not self.writes)
        if any(stays or self.read > at for at in copy.copied):
            return True  # the program's own copy, instead of another one later
        if stays:
            return False
        return any(
            since < at <= copy.read and self.read <= at and not (at == copy.read and is_beside(node))
            for at, node in self.may_write
        )

    def take(self, other: _Storage) -> None:
        """Add what is known of values that share this storage from now on."""
        self.is_given |= other.is_given
        self.is_returned |= other.is_returned
        self.read = max(self.read, other.read)
        self.writes += other.writes
        self.may_write += other.may_write
        self.copied += other.copied
        other.into = self


class Sharing:
    """Which values of a graph share storage, and what happens to it.

    Args:
        graph: any graph, as it is now.
        is_joint: whether forward and backward are in it, and will be cut apart.
        is_beside: whether a node that writes in place leaves what a copy is made of: by copy, operand, node.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        is_joint: bool = False,
        is_beside: Callable[[Node, Node, Node], bool] = lambda copy, operand, node: False,
    ) -> None:
        self._is_beside = is_beside
        self._base = bases(graph)
        self._known: dict[Node, _Storage] = {base: _Storage() for base in self._base.values()}
        self._times = Times(graph, is_joint=is_joint)
        for node in graph.nodes:
            self._add(node)  # nothing is united yet
        for given in _torch.stored_afterwards(graph):
            storage = self._known[self._base[given]]
            storage.is_returned = True
            storage.writes.append(self._times.order[graph.output_node()])
        for operand in _handed_back(graph):
            storage = self._known[self._base[operand]]
            storage.is_returned = True
            storage.read = math.inf

    def unite(self, copy: Node, *operands: Node) -> bool:
        """Let a copy share the storage of its operand, if it may; returns whether it does.

        Of several operands each is copied into a part of it, and all are seen as one storage from then on.
        """
        new, since = self._storage(copy), self._times.order[copy]
        for operand in operands:
            old = self._storage(operand)
            beside = functools.partial(self._is_beside, copy, operand)
            if old is not new and (old.is_seen_with(new) or old.is_spoiled_for(new, since, beside)):
                return False
        for operand in operands:
            old, new = self._storage(operand), self._storage(copy)
            if old is not new:
                old.take(new)
        return True

    def stands_for(self, new: Node, old: Node) -> None:
        """Note that a new node is used as another one was."""
        self._base[new], self._times.order[new] = self._base[old], self._times.order[old]

    def is_written(self, node: Node, since: Node, until: Node) -> bool:
        """Return whether the storage of a value is written behind one node and not behind another."""
        first, last = self._times.order[since], self._times.order[until]
        return any(first < at <= last for at in self._storage(node).writes)

    def _storage(self, node: Node) -> _Storage:
        storage = self._known[self._base[node]]
        while storage.into is not None:
            storage = storage.into
        return storage

    def _add(self, node: Node) -> None:
        """Note what a node does with the storages of its operands."""
        at, op, known, base = self._times.of(node), node.op, self._known, self._base
        if op in ("placeholder", "get_attr"):
            known[base[node]].is_given = True
        for value in may_write(node):
            known[base[value]].may_write.append((at, node))
            if not traits_of(node.target).is_computed_scatter:
                known[base[value]].copied.append(at)
        stored = written(node)
        for value in stored:
            known[base[value]].writes.append(at)
        is_copy = bool(stored) and node.target is aten.copy_.default
        for value in node.all_input_nodes:
            storage = known[base[value]]
            storage.is_given |= is_copy
            if op == "output":
                storage.is_returned, storage.read = True, math.inf
            elif value not in stored and storage.read < at:
                storage.read = at


def _handed_back(graph: Graph) -> Iterator[Node]:
    """Yield the operands of calls of subgraphs in whose storage a result may lie.

    Dynamo refuses such a subgraph; other makers of graphs need not.
    """
    summaries = Summaries()
    users = itertools.chain.from_iterable(node.users for node in graph.find_nodes(op="get_attr"))
    for call in filter(None, map(call_of, dict.fromkeys(users))):
        for body in call.bodies:
            known = summaries.of(body.module)
            places: Iterable[int] = range(len(body.operands))
            if known is not None:
                places = set[int]().union(*map(known.operands_of, range(len(known.outputs))))
            values = (call.value(body.operands[place]) for place in places)
            yield from (value for value in values if isinstance(value, Node))


def may_write(node: Node) -> list[Node]:
    """Return what a functional call may write in place of a copy."""
    values: Iterable[Any] = ()
    if is_operator(node.target):
        traits = traits_of(node.target)
        values = node.args[:1] if traits.is_scatter or traits.copies_first else ()
    elif is_wrapper(node.target) and (is_operator(node.args[0]) if node.args else True):
        values = operands(node).values()
    return [value for value in values if isinstance(value, Node)]
