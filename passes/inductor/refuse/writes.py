"""What is written into each buffer of a decision, in order, and by whom: a kernel, or Inductor's own code."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from ... import _torch
from ...memory.region import Region
from ...ops import lists
from ...ops.computed import MASKS, has_code
from ...ops.in_place_form import in_place_form
from ...ops.schema import argument, is_operator, schema_of, traits_of
from ...reinplacing.facts.candidate import Candidate
from ...reinplacing.facts.decision import Decision
from ...reinplacing.facts.place import Storage
from ...reinplacing.kinds import view_scatter
from ..defects import defended
from ..lowering import is_computed, is_constant, is_stored_by_inductor
from .buffers import Buffer, Buffers


class Mutation(NamedTuple):
    """A write into a buffer.

    Args:
        time: its place in the graph.
        node: what writes.
        written: the bytes.
        is_lowered: whether Inductor's own code stores them.
        is_direct: whether it does, and knows where when it compiles: no index that is read says so.
        is_ready: whether a kernel stores them, before which all is in memory.
        sources: what is stored, or what it is computed from, each with whether its element i is stored in
            element i of these bytes.
    """

    time: float
    node: Node
    written: tuple[Region, ...]
    is_lowered: bool
    is_direct: bool
    is_ready: bool
    sources: tuple[tuple[Node, bool], ...]


def mutations(decision: Decision, buffers: Buffers) -> dict[Buffer, list[Mutation]]:
    """Return the writes into each buffer, in the order of the graph."""
    found: dict[Buffer, list[Mutation]] = {}
    for candidate in decision.edge.values():
        if candidate.writes and candidate.index not in decision.already_there:
            buffer = buffers.of_candidate(candidate)
            found.setdefault(buffer, []).append(_mutation(decision, candidate))
    for storage, writes in decision.model.writes.items():
        for write in writes:
            if write.node not in decision.erased:
                sources = tuple((n, True) for n in write.node.all_input_nodes)
                copy = Mutation(write.time, write.node, (write.place.region,), True, True, False, sources)
                buffer = buffers.of_node(write.node.all_input_nodes[0], storage)
                found.setdefault(buffer, []).append(copy)
    for written in found.values():
        written.sort(key=operator.attrgetter("time"))
    return found


def _mutation(decision: Decision, candidate: Candidate) -> Mutation:
    # What a kernel wrote in copies of parts is put back by a store.
    is_lowered = is_stored_by_inductor(candidate) or candidate.index in decision.part_copies
    is_direct = is_lowered and not _is_indirect(candidate)
    what = candidate.time, candidate.node, candidate.writes
    return Mutation(*what, is_lowered, is_direct, candidate.kind.by_kernel, tuple(_sources(candidate)))


def _is_indirect(candidate: Candidate) -> bool:
    """Return whether where a candidate stores is read from an index while the program runs."""
    if traits_of(candidate.node.target).is_index_put:
        indices: Any = argument(candidate.node, "indices")
        return any(_is_read(index) for index in indices if index is not None)
    form = in_place_form(candidate.node.target) if candidate.kind.by_form else None
    return form is not None and schema_of(form).name.startswith("aten::scatter")


def _is_read(index: Node) -> bool:
    """Return whether an index is in memory, and not a mask: Inductor computes the places of a plain range."""
    val: Any = index.meta.get("val")
    if not isinstance(val, torch.Tensor) or val.dtype in MASKS:
        return False
    pending, seen = [index], {index}
    while pending:
        node = pending.pop()
        if is_constant(node):
            continue
        if not node.all_input_nodes or not is_operator(node.target) or not has_code(node.target):
            return True
        pending.extend(n for n in node.all_input_nodes if n not in seen)
        seen.update(node.all_input_nodes)
    return False


def _sources(candidate: Candidate) -> Iterator[tuple[Node, bool]]:
    """Yield what a candidate's node stores or computes it from; all elements of a list are one kernel."""
    node, slot = candidate.node, candidate.slot
    if lists.is_list(node) and isinstance(slot, int):
        own = set(lists.parts(node, slot))
        yield from ((n, True) for n in own)
        others = {n for i in range(len(node.meta["val"])) if i != slot for n in lists.parts(node, i)}
        yield from ((n, False) for n in others)
    else:
        yield from ((n, candidate.kind.stores_source) for n in node.all_input_nodes)


def is_born_by_a_write(decision: Decision, root: Storage) -> bool:
    """Return whether a buffer begins as a copy that is written: the next write into it is the second one.

    So does what a refused wrapper makes, and what Inductor lowers functional operators to whose in-place
    form it lowers.
    """
    node, maker = root.node, decision.model.made_by.get(root)
    if not is_operator(node.target):
        return maker is not None
    schema = schema_of(node.target)
    if schema.writes_through is not None:
        is_cloned = maker is not None and (
            maker.index in decision.early or view_scatter.begins_at_operand(decision.model, maker.operand)
        )
        return is_cloned or not schema.is_computed_scatter
    form = in_place_form(node.target)
    return form is not None and _torch.is_lowered(form)


def lost_by_exchange(decision: Decision, candidate: Candidate) -> Node | None:
    """Return what would be lost if a candidate were written in place by Inductor, ``None`` if nothing would.

    What it computes by itself of lists, fills and masked values it does not write into a buffer that it made:
    it makes another one and exchanges the two. What it stored before goes into the new one then, and what was
    given a view before is given one of the new. Functional they are the same, without the exchange.
    """
    if not _is_exchanged(candidate) or not defended("exchanged-buffer"):
        return None
    root = decision.root(candidate.operand.storage)
    if root.is_input:
        return None
    if not traits_of(candidate.node.target).is_index_put:
        return root.node
    for earlier in decision.path(candidate.operand.storage):
        if not earlier.kind.is_clone:
            return earlier.node
    if is_born_by_a_write(decision, root):
        return root.node
    earlier_reads = (r for r in decision.model.reads[root] if r.time < candidate.time)
    return next((r.node for r in earlier_reads if not _takes_whole(decision, r.node, root)), None)


def _takes_whole(decision: Decision, node: Node, root: Storage) -> bool:
    """Return whether a node is computed of a buffer itself: what takes a view may come after the exchange."""
    places = ((n, decision.model.place(n)) for n in node.all_input_nodes)
    taken = (n for n, place in places if place is not None and decision.root(place.storage) is root)
    return is_computed(node) and all(n is root.node for n in taken)


def _is_exchanged(candidate: Candidate) -> bool:
    if traits_of(candidate.node.target).is_index_put:
        indices: Any = argument(candidate.node, "indices")
        return any(index is not None and index.meta["val"].dtype in MASKS for index in indices)
    if not candidate.kind.by_form:
        return False
    return lists.is_list(candidate.node) or schema_of(candidate.node.target).name == "aten::fill"
