"""One forward decision over the candidates of a model, in graph order."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import price
from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.model import Model
from ..facts.refusal import Refusal
from .conditions import judge


def decide(model: Model, banned: dict[int, Refusal] | None = None) -> Decision:
    """Decide all candidates in graph order; those in ``banned`` are refused with the reason given."""
    decision, banned = Decision(model), banned or {}
    for candidate in _in_order(model):
        refusal = banned.get(candidate.index) or judge(decision, candidate)
        if refusal is not None:
            decision.refused[candidate.index] = refusal
        else:
            decision.accept(candidate)
    decision.erased.update(model.idle)
    for writes in model.writes.values():
        decision.erased.update(w.node for w in writes if decision.is_identity(w))
    return decision


def _in_order(model: Model) -> Iterator[Candidate]:
    """Yield candidates in graph order, those of one node by what refusing them would cost."""
    for siblings in model.candidates_of.values():
        yield from price.by_gain(model, siblings)
