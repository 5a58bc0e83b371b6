"""Letting a call work on a copy of a small part of a large buffer that it also reads.

A v2 wrapper clones the whole base of what its operator writes. Where only the call itself still reads the
old bytes, the buffer is kept, the call gets a copy of the view that it writes, and the copy is written back
right after it. That is what a v1 wrapper amounts to: it clones the view, and a scatter puts it back.
"""

from __future__ import annotations

from torch.fx import Node

from ...memory.region import Region
from ...ops.schema import schema_of
from ...ops.wrapper import base_views
from ..facts import price
from ..facts.candidate import Candidate, PartCopy
from ..facts.decision import Decision
from ..facts.place import Place, is_known


def parts(decision: Decision, candidate: Candidate, hits: list[tuple[Node, Place]]) -> list[PartCopy] | None:
    """Return the views that a call must not write directly, ``None`` where copies of them cannot stand in.

    Args:
        decision: so far.
        candidate: a base; all conditions but the one about its own call hold.
        hits: the other operands of the call that lie in its buffer, where it is written.
    """
    model = decision.model
    if not candidate.kind.of_bases or not is_known(candidate.operand):
        return None
    root = decision.root(candidate.operand.storage)
    if model.target.converts_stores and model.dtype_of(root) != candidate.operand.value.dtype:
        return None
    views = [v for v in base_views(candidate.node) if v.base == candidate.slot]
    if len(views) != len(candidate.writes):
        return None
    found: list[PartCopy] = []
    for i, written in enumerate(candidate.writes):
        mine = [node for node, place in hits if model.geometry.overlap(place.region, written) is not False]
        if not mine:
            continue
        if not _stands_alone(decision, candidate, i):
            return None
        only = views[i].name in schema_of(candidate.node.args[0]).write_only
        size = 0 if only else price.of_region(model, written)
        found.append(PartCopy(i, size, only, tuple(dict.fromkeys(mine))))
    return found


def _stands_alone(decision: Decision, candidate: Candidate, view: int) -> bool:
    """Return whether a view is a part of its base whose elements are bytes of their own."""
    geometry, written = decision.model.geometry, candidate.writes[view]
    if geometry.self_overlapping(written) or geometry.contains(written, candidate.operand.region):
        return False
    others: list[Region] = [w for i, w in enumerate(candidate.writes) if i != view]
    return all(geometry.overlap(written, other) is False for other in others)
