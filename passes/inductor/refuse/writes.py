"""Writes that Inductor would lose: it exchanges a buffer for another one instead of storing into it."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from ... import _torch
from ...ops import lists
from ...ops.computed import MASKS
from ...ops.in_place_form import in_place_form
from ...ops.schema import argument, is_operator, schema_of, traits_of
from ...reinplacing.facts.candidate import Candidate
from ...reinplacing.facts.decision import Decision
from ...reinplacing.facts.place import Storage
from ...reinplacing.kinds import view_scatter
from ..defects import defended
from ..lowering import is_computed


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
            maker.index in decision.early or view_scatter.begins_at_operand(decision.model, maker)
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
