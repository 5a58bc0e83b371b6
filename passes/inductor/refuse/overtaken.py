"""Readers that Inductor would run in one kernel with the store that overwrites what they read.

Before Inductor fuses a reader of a buffer with a later store into it, it sees whether both touch the same
element at a time. It looks for the reader's reads by the buffer's first name, and from the second write into
a buffer on they have another one (``fusable_weak_dep``): it finds none, and takes the two for independent.
So in

    kernel_(x)
    z = x[0:4] + w
    x[1:5] = w * 3

the sum reads elements that the store has overwritten. Two kernels are fused where they share anything else,
here ``w``. Only the write that follows a reader matters: what comes after that waits for it.
"""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from ...memory.region import Region, Size
from ...ops import lists
from ...ops.schema import argument, is_operator, schema_of
from ...reinplacing.facts.decision import Decision
from ...reinplacing.facts.place import Place, Read, Storage
from ..lowering import is_computed, is_stored_by_inductor
from .buffers import Buffer
from .writes import Mutation, is_born_by_a_write

_GROUP = 64  # a reader whose company is larger is taken to share something
Seen = set[tuple[Node, tuple[Size, ...]]]  # what was looked at, with the sizes of what was read
_TIME = operator.attrgetter("time")


class Glance(NamedTuple):
    """A read that Inductor's own code does.

    Args:
        time: when.
        place: what is read.
        node: what is computed of it; ``None`` for a copy.
    """

    time: float
    place: Place
    node: Node | None


def overtaken(decision: Decision, mutated: dict[Buffer, list[Mutation]]) -> dict[Buffer, Node]:
    """Return the buffers with a reader that a store would overtake, each with the store.

    Args:
        decision: what is in place.
        mutated: the writes into each buffer, in order.
    """
    pairs: dict[Buffer, list[tuple[float, Mutation]]] = {}
    for buffer, written in mutated.items():
        begin = [-1.0] if is_born_by_a_write(decision, buffer.root) else []
        before = itertools.chain(begin, (m.time for m in written))
        after = written if begin else written[1:]
        found = [(time, m) for time, m in zip(before, after, strict=False) if m.is_direct]
        if found:
            pairs[buffer] = found
    if not pairs:
        return {}
    glances = _glances(decision, (buffer.root for buffer in pairs))
    return {
        buffer: store
        for buffer, found in pairs.items()
        if (store := _first(decision, glances[buffer.root], found)) is not None
    }


def _first(decision: Decision, glances: list[Glance], pairs: list[tuple[float, Mutation]]) -> Node | None:
    """Return the first store that overtakes a reader since the write before it."""
    for since, mutation in pairs:
        begin = bisect.bisect_right(glances, since, key=_TIME)
        end = bisect.bisect_left(glances, mutation.time, key=_TIME)
        own = _made_for(decision, mutation, since) if begin < end else set()
        seen: Seen = set()
        for glance in itertools.islice(glances, begin, end):
            if glance.node not in own and _is_apart(decision, glance, mutation, seen):
                return mutation.node
    return None


def _made_for(decision: Decision, mutation: Mutation, since: float) -> set[Node]:
    """Return what is computed after the write before for a store alone, as far as it goes by then.

    With those the store is fused only where it takes each element that they make in its own turn, and whether
    it is stored in its own place then is known: ``misordered.py`` looks at that.
    """
    order = decision.model.order
    pending = [node for node, _ in mutation.sources]
    cone: set[Node] = set()
    while pending:
        node = pending.pop()
        is_lazy = is_computed(node) and not _is_store(decision, node)
        if node not in cone and order[node] > since and is_lazy:
            cone.add(node)
            pending.extend(node.all_input_nodes)
    own = {mutation.node}
    for node in sorted(cone, key=order.__getitem__, reverse=True):
        if all(user in own or order[user] > mutation.time for user in node.users):
            own.add(node)
    return own


def _is_apart(decision: Decision, glance: Glance, mutation: Mutation, seen: Seen) -> bool:
    """Return whether a reader looks at bytes of a store at another time than the store writes them."""
    geometry, region = decision.model.geometry, glance.place.region
    hits = [written for written in mutation.written if geometry.overlap(region, written) is not False]
    if not hits or _is_alone(decision, glance):
        return False
    if not all(geometry.same_in_order(region, written) for written in hits):
        return True
    return glance.node is not None and not _stays_in_order(decision, glance, mutation, seen)


def _is_alone(decision: Decision, glance: Glance) -> bool:
    """Return whether a reader shares nothing with anything but these very bytes, read in the same order.

    Then a store is fused with it only where it reads them like this, too,
    and ``misordered.py`` looks at that.
    """
    if glance.node is None:
        return False
    root = decision.root(glance.place.storage)
    pending, group = [glance.node], {glance.node}
    while pending:
        node = pending.pop()
        beside = _beside(decision, node, root, glance.place.region)
        if beside is None or len(group) > _GROUP:
            return False
        pending.extend(beside - group)
        group |= beside
    return True


def _beside(decision: Decision, node: Node, root: Storage, region: Region) -> set[Node] | None:
    """Return what a node may share a kernel with; ``None`` where it takes anything but bytes of a buffer."""
    model = decision.model
    found: set[Node] = set()
    for operand in node.all_input_nodes:
        place = model.place(operand)
        if is_computed(operand) and not _is_store(decision, operand):
            found.add(operand)
        elif isinstance(operand.meta.get("val"), torch.Tensor):
            if place is None or decision.root(place.storage) is not root:
                return None
    if _is_store(decision, node):
        return found
    mine = (r.place for r in model.reads_by.get(node, ()) if decision.root(r.place.storage) is root)
    if not all(model.geometry.same_in_order(place.region, region) for place in mine):
        return None
    return found.union(user for user in node.users if is_computed(user))


def _is_store(decision: Decision, node: Node) -> bool:
    """Return whether a node is a real write, or in place."""
    candidates = decision.model.candidates_of.get(node, ())
    return node.target is torch.ops.aten.copy_.default or any(c.result in decision.edge for c in candidates)


def _stays_in_order(decision: Decision, glance: Glance, mutation: Mutation, seen: Seen) -> bool:
    """Return whether all that is computed of a value before a store has its elements in their order."""
    pending, sizes = [glance.node], glance.place.region.sizes
    while pending:
        node = pending.pop()
        if node is None or (node, sizes) in seen or node is mutation.node or not is_computed(node):
            continue
        seen.add((node, sizes))
        if _takes_in_order(node):
            continue
        if not _keeps_order(node, sizes):
            return False
        pending.extend(user for user in node.users if decision.model.order[user] < mutation.time)
    return True


def _takes_in_order(node: Node) -> bool:
    """Return whether a node takes its operands in their order, and what it makes is in memory."""
    if not is_operator(node.target):
        return False
    schema = schema_of(node.target)
    if schema.name == "aten::sort":
        operand: Any = node.args[0]
        return argument(node, "dim") in (None, -1, operand.meta["val"].dim() - 1)
    return schema.takes_in_order


def _keeps_order(node: Node, sizes: tuple[Size, ...]) -> bool:
    """Return whether element i of a result is made of element i of each operand, by the sizes of a read.

    What is taken out of a value that was broadcast along its first dimension has again all of what was read.
    """
    if lists.is_list(node) or lists.maker(node) is not None:
        return True
    schema = schema_of(node.target)
    if schema.name == "aten::select":
        whole, part = (tuple(n.meta["val"].shape) for n in (node.args[0], node))  # type: ignore[union-attr]
        return part == sizes == whole[1:] and argument(node, "dim") in (None, 0)
    return torch.Tag.pointwise in node.target.tags or schema.keeps_order or schema.regroups  # type: ignore[union-attr]


def _glances(decision: Decision, roots: Iterable[Storage]) -> dict[Storage, list[Glance]]:
    """Return what Inductor's own code reads of some storages, in order."""
    model = decision.model
    found: dict[Storage, list[Glance]] = {root: [] for root in roots}
    for storage, reads in model.reads.items():
        mine = found.get(decision.root(storage))
        if mine is None:
            continue
        for read in reads:
            if _is_copied(decision, read):
                mine.append(Glance(model.order[read.node] - 0.5, read.place, None))
            elif _is_done(decision, read):
                mine.append(Glance(model.order[read.node], read.place, read.node))
    copied = [(s.before, s.operand) for s in decision.snapshots]
    copied.extend((model.candidates[i].node, node) for i, _, node in decision.copied)
    for before, operand in copied:
        place = model.place(operand)
        if place is not None and decision.root(place.storage) in found:
            found[decision.root(place.storage)].append(Glance(model.order[before] - 0.5, place, None))
    for glances in found.values():
        glances.sort(key=_TIME)
    return found


def _is_copied(decision: Decision, read: Read) -> bool:
    """Return whether a call reads something because it works on a copy of it."""
    return any(
        c.index in decision.refused and c.operand.storage is read.place.storage
        for c in decision.model.candidates_of.get(read.node, ())
    )


def _is_done(decision: Decision, read: Read) -> bool:
    """Return whether a reader is Inductor's own code, and reads: what is in place does not read itself."""
    if read in decision.served or not is_computed(read.node):
        return False
    accepted = [c for c in decision.model.candidates_of.get(read.node, ()) if c.result in decision.edge]
    if not accepted:
        return True
    if any(c.index in decision.already_there for c in accepted):
        return False
    return any(is_stored_by_inductor(c) and c.operand.storage is not read.place.storage for c in accepted)
