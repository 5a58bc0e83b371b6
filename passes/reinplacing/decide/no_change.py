"""Writes that leave bytes as they are: what they write there lies there already."""

from __future__ import annotations

from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.place import Place, Storage, reads_alike


def lies_there(decision: Decision, candidate: Candidate) -> bool:
    """Return whether a scatter's source already lies where the scatter would write it."""
    if len(candidate.others) != 1:
        return False
    _, node, source = candidate.others[0]
    if decision.is_served(candidate.node, node):
        return False  # it is an older value, from elsewhere
    same_buffer = decision.root(source.storage) is decision.root(candidate.operand.storage)
    alike = reads_alike(source.value, candidate.operand.value)
    return same_buffer and alike and decision.model.geometry.same(source.region, candidate.writes[0])


def is_unchanged(decision: Decision, value: Storage, seen: Place) -> bool:
    """Return whether ``value`` was made from ``seen`` without changing the bytes that are looked at.

    Writing such a value back over them leaves them as they are.
    """
    model = decision.model
    while value is not seen.storage:
        candidate = model.made_by.get(value)
        if candidate is None or candidate.obstacle is not None:
            return False  # the value has no coordinates to compare in
        kept = [p for _, _, p in candidate.others if p.storage is seen.storage]
        for written in candidate.writes:
            put_back = candidate.kind.stores_source and any(
                reads_alike(p.value, candidate.operand.value) and model.geometry.same(p.region, written)
                for p in kept
            )
            if not put_back and model.geometry.overlap(seen.region, written) is not False:
                return False
        value = candidate.operand.storage
    return True
