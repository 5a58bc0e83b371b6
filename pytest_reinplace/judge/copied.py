"""Clones of a whole tensor that a call writes in place: it is in place, and copied all the same."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from . import graph_facts

if TYPE_CHECKING:
    from ..passes import Outcome
    from .before import Before
    from .fate import Fates


def told(found: list[Outcome], before: Before, fates: Fates) -> list[Outcome]:
    """Return the outcomes, of which clones say what is in place and copied by them as a whole.

    Args:
        found: one outcome for each candidate.
        before: the functional graph.
        fates: where its values lie now.
    """
    written: dict[Any, tuple[Outcome, int]] = {}
    for outcome in found:
        home = fates.home(outcome.node, outcome.arg) if outcome.reinplaced and not outcome.fused else None
        if home is not None:
            written.setdefault(home, (outcome, _nbytes(outcome, before)))
    return [_told(outcome, written, before, fates) for outcome in found]


def _told(outcome: Outcome, written: dict[Any, tuple[Outcome, int]], before: Before, fates: Fates) -> Outcome:
    home = None if outcome.reinplaced or outcome.follows else fates.home(outcome.node, outcome.arg)
    other, nbytes = written.get(home, (None, 0))
    if other is None or _nbytes(outcome, before) < nbytes:
        return outcome
    return dataclasses.replace(outcome, copies=other.named)


def _nbytes(outcome: Outcome, before: Before) -> int:
    return graph_facts.nbytes(graph_facts.operand(before.nodes[outcome.node], outcome.arg))
