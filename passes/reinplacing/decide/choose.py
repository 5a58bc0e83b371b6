"""From one forward decision to the cheapest one: proposals are tried until none makes it better.

A forward decision is right whatever is refused and whatever it was made under, so every trial is legal by
construction and only its price is compared. What may be proposed: to refuse an accepted candidate for the
sake of dearer ones (here), to leave operators their own layout (``own_layout``), to move readers
(``reorder``). Trials are bounded, so the search stays proportional to the graph.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from torch.fx import Node

from ...reason import Reason
from ..facts import price
from ..facts.candidate import Candidate, Refusal
from ..facts.decision import Decision
from ..facts.model import Model
from ..model.build import build
from .conditions import broken, judge
from .escape import Escapes
from .no_change import lies_there

Proposals = Callable[[Decision], Iterator[Decision]]  # decisions that may be better than one
_TRIALS = 48


def improved(
    decision: Decision, proposals: Proposals, budget: int = _TRIALS, *, as_good: bool = False
) -> Decision:
    """Go on from each first proposal that is better, until none is or the budget is spent.

    Args:
        decision: where to begin.
        proposals: yields what may be better than a decision, the most promising first; trials are made when
            they are asked for.
        budget: how many may be tried.
        as_good: whether one as good is taken, too; none may come twice then.
    """
    is_better = operator.le if as_good else operator.lt
    least, open_ends = decision, [(decision, proposals(decision))]
    while open_ends and budget > 0:
        decision, trials = open_ends[-1]
        trial = next(trials, None)
        if trial is None:
            open_ends.pop()  # what helps first may stand in the way of what helps more: back to those beside
            continue
        budget -= 1
        if is_better(price.rank(trial), price.rank(decision)):
            open_ends.append((trial, proposals(trial)))
            least = trial if is_better(price.rank(trial), price.rank(least)) else least
    return least


def best(model: Model) -> Decision:
    """Return the cheapest legal decision found about a model."""
    budget = min(_TRIALS, 4 + 40_000 // (1 + len(model.order)))
    refusals = functools.partial(_refusals, tried=set())
    return _explained(improved(forward(model), refusals, budget))


def anew(model: Model, **changed: Any) -> Decision:
    """Return the cheapest legal decision found about a graph under other premises: fields that changed."""
    premises = dataclasses.replace(model.premises, **changed)
    return best(build(model.graph, model.options, premises=premises, calls=model.calls))


def forward(model: Model) -> Decision:
    """Return the legal decision that refuses nothing by choice."""
    return closed(model, dict.fromkeys(model.fused, Refusal(Reason.CHEAPER)))


def closed(model: Model, chosen: dict[int, Refusal]) -> Decision:
    """Decide, then lift escapes until none is left."""
    bans, returned = dict(chosen), dict[Node, int]()
    while True:
        decision = decide(model, bans)
        decision.chosen = chosen
        wrong = broken(decision)
        if wrong:
            bans.update(wrong)
            continue
        decision.returned = returned
        clones, refusals = Escapes(decision, returned).lift()
        returned.update(clones)
        if not refusals:
            return decision
        bans.update(refusals)


def decide(model: Model, banned: dict[int, Refusal] | None = None) -> Decision:
    """Decide all candidates in graph order; those in ``banned`` are refused with the reason given."""
    decision, banned = Decision(model), banned or {}
    for candidate in _in_order(model):
        refusal = banned.get(candidate.index)
        if refusal is None or _is_needless(decision, candidate, refusal):
            refusal = judge(decision, candidate)
        if refusal is not None:
            decision.refused[candidate.index] = refusal
        else:
            decision.accept(candidate)
    decision.erased.update(model.idle)
    for writes in model.writes.values():
        decision.erased.update(w.node for w in writes if decision.is_identity(w))
    return decision


def _is_needless(decision: Decision, candidate: Candidate, refusal: Refusal) -> bool:
    """Return whether a scatter would be computed, as that is cheaper, of what lies in its place already."""
    is_computed = candidate.index in decision.model.fused and refusal.reason is Reason.CHEAPER
    return is_computed and lies_there(decision, candidate)


def _in_order(model: Model) -> Iterator[Candidate]:
    """Yield candidates in graph order, those of one node by what refusing them would cost."""
    for siblings in model.candidates_of.values():
        yield from price.by_gain(model, siblings)


def _refusals(decision: Decision, tried: set[frozenset[int]]) -> Iterator[Decision]:
    """Yield decisions in which one more candidate is refused, so that dearer ones need not be.

    A choice exists where a refusal names *culprits*, accepted candidates of which cutting one would lift it,
    and where copies were made for the sake of one.
    """
    model = decision.model
    for choice in dict.fromkeys(_choices(decision)):
        together = frozenset({*decision.chosen, choice})
        if choice not in decision.chosen and together not in tried:
            tried.add(together)
            yield closed(model, {**decision.chosen, choice: Refusal(Reason.CHEAPER)})


def _choices(decision: Decision) -> Iterator[int]:
    """Yield the candidates worth refusing, those first that hold the dearest back."""
    model = decision.model
    for index in price.by_bytes(model, decision.refused, dearest_first=True):
        yield from price.by_bytes(model, decision.refused[index].culprits)
    yield from (s.candidate for s in decision.snapshots)
    yield from (i for i, _, _ in decision.copied)
    yield from decision.part_copies
    yield from decision.instead


def _explained(decision: Decision) -> Decision:
    """Say of a candidate that was refused for the sake of others which ones these are."""
    candidates = decision.model.candidates
    for index in decision.chosen:
        if index in decision.model.fused or decision.refused[index].reason is not Reason.CHEAPER:
            continue
        others = {i: r for i, r in decision.chosen.items() if i != index}
        freed = tuple(
            candidates[i].node
            for i, refusal in decide(decision.model, others).refused.items()
            if i not in decision.refused and index in refusal.culprits
        )
        is_copy = candidates[index].kind.is_copy
        decision.refused[index] = Refusal(Reason.OVERWRITTEN if is_copy else Reason.CHEAPER, freed)
    return decision
