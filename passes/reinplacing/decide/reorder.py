"""Moving readers to save copies: of all legal orders of a graph, one in which less is copied.

A candidate that is refused only because the old bytes are read after it can be in place when these
readers come first. Only readers that unlock a copy move, with what they alone need, and only when their
results together are no larger than that copy. The graph in its new order is then decided anew, as if it
had been written so: nothing here can make a decision wrong, only no better, and then the order stays.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from torch.fx import Node

from ...reason import Reason
from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.model import Model
from ..facts.premises import Order
from ..facts.refusal import Refusal
from ..model.build import build
from .choose import best, closed
from .peak import peak_bytes
from .schedule import Schedule

_ROUNDS = 3
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


def unlocked(decision: Decision) -> Decision:
    """Return a decision with readers moved where that saves bytes; the one given where it does not.

    Args:
        decision: the best decision for the order as written.
    """
    model, groups, tried = decision.model, list[_Group](), set[Any]()
    for _ in range(_ROUNDS if len(model.order) < 2000 else 1):
        refused = decision.refused.values()
        readers = decision.returned or decision.snapshots
        if not readers and not any(r.reason in _HINTS_OF_MOVABLE for r in refused):
            break
        more = [g for g in _wanted(decision) if (g.key, g.readers) not in tried]
        if not more:
            break
        tried.update((g.key, g.readers) for g in more)
        trial, kept = _tried(model, [*groups, *more])
        if trial is None or trial.rank >= decision.rank or peak_bytes(trial) > peak_bytes(decision):
            break
        decision, groups = trial, kept
    return decision


def _tried(model: Model, groups: list[_Group]) -> tuple[Decision | None, list[_Group]]:
    """Decide with the readers of all groups moved, then with those alone that were worth it."""
    order, kept = _order(model, groups)
    while order is not None:
        setting = dataclasses.replace(model.setting, order=order)
        decision = best(build(model.graph, model.options, setting=setting, calls=model.calls))
        needed = [group for group in kept if _is_needed(decision, group)]
        if len(needed) == len(kept):
            return decision, kept
        order, kept = _order(model, needed)
    return None, []


def _order(model: Model, groups: list[_Group]) -> tuple[Order | None, list[_Group]]:
    schedule = Schedule(model)
    kept = [g for g in groups if schedule.move(g.readers, g.before, g.limit)]
    order = schedule.order()
    if order is not None:
        order = dataclasses.replace(order, unlocks={g.key: g.readers for g in kept})
    return order, kept


def _forward(decision: Decision) -> Decision:
    """Return the decision that refuses nothing by choice: this one, where it chose nothing."""
    fused = decision.model.fused
    if any(r.reason in _CHOSEN and i not in fused for i, r in decision.refused.items()):
        return closed(decision.model, dict.fromkeys(fused, Refusal(Reason.CHEAPER)))
    return decision


def _wanted(decision: Decision) -> list[_Group]:
    """Return the readers that hold candidates back, where nothing else is seen to."""
    model, forward = decision.model, _forward(decision)
    found = []
    for index, refusal in forward.refused.items():
        candidate = model.candidates[index]
        if refusal.reason in _MOVABLE and not _is_kept(forward, candidate):
            clobbered = refusal.reason is Reason.CLOBBERED
            before = refusal.blockers[0] if clobbered else candidate.node
            readers = refusal.blockers[1:] if clobbered else refusal.blockers
            if readers:
                found.append(_Group((candidate.node, candidate.slot), before, readers, candidate.nbytes))
    for snapshot in forward.snapshots:
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
