"""Copying a small old value for its later readers, so that a large buffer can be written in place.

A candidate that is held back by readers of old bytes can be written after all when what they read is
copied right before it. That is worth it where they read little: one row of a cache, say.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch.fx import Node

from ...ops import higher_order
from ...ops.nested import nodes
from ...ops.schema import argument, is_operator, schema_of
from ...ops.views import is_absolute
from ...ops.wrapper import base_views
from ..facts import price
from ..facts.candidate import Candidate, Snapshot
from ..facts.decision import Decision
from ..facts.place import Place, Read


def snapshots(
    decision: Decision, candidate: Candidate, hits: Collection[Read], at: Node
) -> list[Snapshot] | None:
    """Return copies that serve all readers in ``hits``, ``None`` where one cannot be served.

    Args:
        decision: as far as it is decided.
        candidate: what may be written in place because of them.
        hits: the reads that would see other bytes.
        at: the node that overwrites these.
    """
    served: dict[Node, list[Read]] = {}
    made: list[Snapshot] = []
    for read in hits:
        operands = _operands(decision, at, read)
        if not operands:
            clone = _early(decision, candidate, read) if at is candidate.node else None
            if clone is None:
                return None
            made.append(clone)
        for operand in operands:
            served.setdefault(operand, []).append(read)
    model = decision.model
    for operand, reads in served.items():
        place = model.place(operand)
        assert place is not None
        readers = tuple(dict.fromkeys(read.node for read in reads))
        size = price.of_kept(model, place)
        made.append(Snapshot(candidate.index, at, operand, readers, tuple(reads), size))
    return made


def _operands(decision: Decision, at: Node, read: Read) -> list[Node]:
    """Return the operands through which a reader reads, empty where a copy could not stand in for them."""
    model = decision.model
    if read.is_exit or read.in_flight or read.into is not None or _is_rewritten(decision, at, read):
        return []
    if read.node in model.premises.aside:
        return []  # a wrapper that keeps its own views
    if _is_written_between(decision, at, read):
        return []
    found = [
        n
        for n in read.node.all_input_nodes
        if (place := model.place(n)) is not None and _is_same(place, read.place)
    ]
    if any(model.order[n] >= model.order[at] for n in found):
        return []  # a view that is made later
    if is_absolute(read.node) and not _located(read.node).isdisjoint(found):
        return []  # it names bytes by offsets, and a copy begins elsewhere
    is_call = higher_order.call_of(read.node) is not None
    is_other_graph = model.calls.inner if read.node.op == "output" else is_call
    if is_other_graph and not all(model.layouts.may_copy(n, read.place.value) for n in found):
        return []  # another graph may go by where it begins
    return found


def _located(node: Node) -> set[Node]:
    """Return the operands in which a call that names bytes by offsets does so; it may read others."""
    if is_operator(node.target):
        return {argument(node, schema_of(node.target).names[0])}
    bases: Any = node.kwargs.get("_all_bases", node.all_input_nodes)
    return set(bases)


def _early(decision: Decision, candidate: Candidate, read: Read) -> Snapshot | None:
    """Return the clone that a reader would write into, made early; ``None`` where it cannot be."""
    model, node = decision.model, read.node
    mine = [c for c in model.candidates_of.get(node, ()) if _is_same(c.operand, read.place)]
    if len(mine) != 1 or not mine[0].kind.clones_early or mine[0].obstacle is not None or read.in_flight:
        return None
    operand = mine[0].operand_node
    every = nodes((node.args, node.kwargs))
    used = [n for n in every if (p := model.place(n)) is not None and _is_same(p, read.place)]
    if used != [operand] or model.order[operand] >= candidate.time or node in model.relaid:
        return None
    layout = model.layouts.of(node)
    if _is_named(mine[0]) or layout.named or _is_written_between(decision, candidate.node, read):
        return None
    if not model.layouts.may_copy(node, mine[0].operand.value):
        return None
    size = price.of_kept(model, read.place)
    return Snapshot(candidate.index, candidate.node, operand, (node,), (read,), size, mine[0].index)


def _is_named(candidate: Candidate) -> bool:
    """Return whether a call names bytes of what it may write by offsets; it may do so in other operands."""
    if not candidate.kind.of_bases:
        return is_absolute(candidate.node)
    views = base_views(candidate.node)
    return any(v.base == candidate.slot and v.form == "as_strided" for v in views)


def _is_written_between(decision: Decision, at: Node, read: Read) -> bool:
    """Return whether a read sees what is really written after a node, and not the old bytes."""
    return any(
        decision.model.order[at] < write.time < read.time
        and decision.model.geometry.overlap(write.place.region, read.place.region) is not False
        for write in decision.model.writes.get(read.place.storage, ())
    )


def _is_same(a: Place, b: Place) -> bool:
    return a.storage is b.storage and a.region == b.region


def _is_rewritten(decision: Decision, at: Node, read: Read) -> bool:
    """Return whether a reader cannot be given another tensor: it writes there, or shares what it returns."""
    model = decision.model
    if read.node.op == "output":
        leaves = {n for n, place in model.outputs if place.storage is read.place.storage}
        return read.place.storage.is_input or len(leaves) > 1
    if read.node.op != "call_function":
        return True
    root = decision.root(read.place.storage)
    return any(
        decision.root(c.operand.storage) is root
        and model.order[c.operand_node] < model.order[at]
        and model.geometry.overlap(c.operand.region, read.place.region) is not False
        for c in model.candidates_of.get(read.node, ())
    )
