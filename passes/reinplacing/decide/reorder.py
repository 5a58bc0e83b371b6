"""Moving readers to save copies: of all legal orders of a graph, one in which less is copied.

A candidate that is refused only because the old bytes are read after it can be in place when these
readers come first. Only readers that unlock a copy move, with what they alone need, and only when their
results together are no larger than that copy. The graph in its new order is then decided anew, as if it
had been written so: nothing here can make a decision wrong, only no better, and then the order stays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from torch.fx import Node

from ...reason import Reason
from ..facts import price
from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.model import Model
from ..facts.premises import Order
from .choose import anew, forward
from .schedule import Schedule

_LARGE = 2000  # nodes of a graph in which readers move once
_MOVABLE = (Reason.STILL_READ, Reason.CLOBBERED, Reason.UNKNOWN_OVERLAP)  # tuples: to hash an enum is slow
_CHOSEN = (Reason.OVERWRITTEN, Reason.CHEAPER)
_HINTS_OF_MOVABLE = (*_MOVABLE, *_CHOSEN)


@dataclasses.dataclass(frozen=True, slots=True)
class _Group:
    """Readers that hold one candidate back.

    Args:
        key: the candidate, in whatever order.
        before: the write that they must come before.
        readers: what must move.
        limit: bytes of the copy that this saves.
    """

    key: tuple[Node, Any]
    before: Node
    readers: tuple[Node, ...]
    limit: int


class Reordering:
    """Proposes to move the readers that hold candidates back, those of a better decision's next.

    Args:
        decision: the best decision for the order as written.
    """

    def __init__(self, decision: Decision) -> None:
        self._model = decision.model
        self._tried: set[Any] = set()
        self._groups: list[_Group] = []  # that moved for the last trial: what comes next moves with them
        self.rounds: int = 3 if len(self._model.order) < _LARGE else 1

    def __call__(self, decision: Decision) -> Iterator[Decision]:
        """Yield a decision with more readers moved, unless it holds more memory at its peak."""
        refused = decision.refused.values()
        readers = decision.returned or decision.snapshots
        if not readers and not any(r.reason in _HINTS_OF_MOVABLE for r in refused):
            return
        more = [g for g in _wanted(decision) if (g.key, g.readers) not in self._tried]
        self._tried.update((g.key, g.readers) for g in more)
        trial = self._moved([*self._groups, *more]) if more else None
        if trial is not None and price.peak_bytes(trial) <= price.peak_bytes(decision):
            yield trial

    def _moved(self, groups: list[_Group]) -> Decision | None:
        """Decide with the readers of all groups moved, then with those alone that were worth it."""
        model = self._model
        order, self._groups = _order(model, groups)
        while order is not None:
            decision = anew(model, order=order)
            needed = [group for group in self._groups if _is_needed(decision, group)]
            if len(needed) == len(self._groups):
                return decision
            order, self._groups = _order(model, needed)
        return None


def _order(model: Model, groups: list[_Group]) -> tuple[Order | None, list[_Group]]:
    schedule = Schedule(model)
    kept = [g for g in groups if schedule.move(g.readers, g.before, g.limit)]
    order = schedule.order()
    if order is not None:
        order = dataclasses.replace(order, unlocks={g.key: schedule.moved_for(g.readers) for g in kept})
    return order, kept


def _wanted(decision: Decision) -> list[_Group]:
    """Return the readers that hold candidates back, where nothing else is seen to."""
    model, fused = decision.model, decision.model.fused
    is_chosen = any(r.reason in _CHOSEN and i not in fused for i, r in decision.refused.items())
    plain = forward(model) if is_chosen else decision  # what was refused by choice hides what holds it back
    found = []
    for index, refusal in plain.refused.items():
        candidate = model.candidates[index]
        if refusal.reason in _MOVABLE and not _is_kept(plain, candidate):
            clobbered = refusal.reason is Reason.CLOBBERED
            before = refusal.blockers[0] if clobbered else candidate.node
            readers = refusal.blockers[1:] if clobbered else refusal.blockers
            if readers:
                found.append(_Group((candidate.node, candidate.slot), before, readers, candidate.nbytes))
    for snapshot in plain.snapshots:
        candidate = model.candidates[snapshot.candidate]
        key = (candidate.node, candidate.slot)
        found.append(_Group(key, snapshot.before, tuple(snapshot.readers), snapshot.nbytes))
    return found


def _is_kept(decision: Decision, candidate: Candidate) -> bool:
    """Return whether the caller wants the old bytes, too: an input that nothing is copied into."""
    root = decision.root(candidate.operand.storage)
    writes = decision.model.writes.get(root, ())
    return root.is_input and not any(w.time > candidate.time for w in writes)


def _is_needed(decision: Decision, group: _Group) -> bool:
    """Return whether a candidate is in place now, in bytes that a reader looked at after it."""
    model = decision.model
    node, slot = group.key
    candidate = next(c for c in model.candidates_of[node] if c.slot == slot)
    if not decision.accepted(candidate):
        return False
    root = decision.root(candidate.result)
    read = (p for reader in group.readers for _, p in model.operands((reader.args, reader.kwargs)))
    return any(decision.root(p.storage) is root for p in read)
