"""From one forward decision to the cheapest one: escapes are lifted, and choices are tried.

The forward decision is right whatever is refused, so every trial below is legal by construction and only
its bytes are compared. A choice exists where a refusal names *culprits*: accepted candidates of which
cutting one would lift it. Trials are bounded, so the search stays proportional to the graph.
"""

from __future__ import annotations

import dataclasses

from torch.fx import Node

from ...reason import Reason
from ..facts.decision import Decision
from ..facts.model import Model
from ..facts.place import Storage
from ..facts.refusal import Refusal
from ..model.build import build
from .conditions import broken
from .escape import Escapes
from .forward import decide

_TRIALS = 48
_ALONE = 4  # operators whose own layout is tried without the others'


def best(model: Model) -> Decision:
    """Return the cheapest legal decision found."""
    banned = dict.fromkeys(model.fused, Refusal(Reason.CHEAPER))
    least = decision, banned = closed(model, banned), banned
    tried: set[frozenset[int]] = set()
    budget = min(_TRIALS, 4 + 40_000 // (1 + len(model.order)))
    # What helps first may stand in the way of what helps more: behind each choice lie those beside it.
    passed: list[tuple[Decision, dict[int, Refusal]]] = []
    while budget > 0:
        choice = _next_choice(decision, banned, tried)
        if choice is None:
            if not passed:
                break
            decision, banned = passed.pop()
            continue
        tried.add(frozenset({*banned, choice}))
        budget -= 1
        trial_bans = {**banned, choice: Refusal(Reason.CHEAPER)}
        trial = closed(model, trial_bans)
        if trial.rank >= decision.rank and budget > 0 and _goes_on(decision, trial, choice):
            further = _next_choice(trial, trial_bans, tried)
            if further is not None:
                tried.add(frozenset({*trial_bans, further}))
                budget -= 1
                trial_bans = {**trial_bans, further: Refusal(Reason.CHEAPER)}
                trial = closed(model, trial_bans)
        if trial.rank < decision.rank:
            passed.append((decision, banned))
            decision, banned = trial, trial_bans
        if trial.rank < least[0].rank:
            least = trial, trial_bans
    return _explained(*least)


def _goes_on(decision: Decision, trial: Decision, choice: int) -> bool:
    """Return whether a choice that costs more by itself may be worth it together with another one.

    It may where it holds something else back, or satisfies only some of those that hold something back, or
    lays open that something else does.
    """
    held = trial.refused.keys() - decision.refused.keys() - {choice}
    if held or any(choice in refusal.partly for refusal in decision.refused.values()):
        return True
    freed = [i for i, refusal in decision.refused.items() if choice in refusal.culprits]
    return any(trial.refused[i].reason is not decision.refused[i].reason for i in freed if i in trial.refused)


def laid_out(decision: Decision) -> Decision:
    """Return a decision in which operators that stay functional keep their own layout, where it is better.

    A result that may take its operand's strides is expected to, and what uses it goes by that; refused, it
    has other strides after all, and some uses of it cannot be in place for nothing.
    """
    while True:
        model = decision.model
        refused = [model.candidates[i] for i in decision.refused]
        mine = {c.node for c in refused if c.obstacle is None and c.node in model.relaid}
        chains = [_relaid_by(model, c.operand.storage) for c in refused if c.obstacle is Reason.LAYOUT]
        sets = [mine.union(c[end] for c in chains) for end in (0, -1)]
        if len(mine) <= _ALONE:  # one by one, many would each be decided anew
            sets.extend({node} for node in sorted(mine, key=model.order.__getitem__))
        choices = {frozenset(model.relaid.keys() & more): None for more in sets}
        trials = [_keeping(model, more) for more in choices if more]
        # As good by its own count is better: a copy for the sake of another layout does not count as one.
        trial = min(trials, key=lambda t: t.rank, default=None)
        if trial is None or trial.rank > decision.rank:
            return decision
        reasons = {
            (c.node, c.slot): decision.refused[c.index]
            for c in refused
            if c.node in trial.model.setting.own_layout
        }
        for candidate in trial.model.candidates:
            reason = reasons.get((candidate.node, candidate.slot))
            if reason is not None and candidate.index in trial.refused:
                trial.refused[candidate.index] = dataclasses.replace(reason, culprits=frozenset())
        decision = trial


def _keeping(model: Model, more: frozenset[Node]) -> Decision:
    """Decide anew, with more nodes that keep their own layout."""
    setting = dataclasses.replace(model.setting, own_layout=model.setting.own_layout | more)
    return best(build(model.graph, model.options, setting=setting, calls=model.calls))


def _relaid_by(model: Model, storage: Storage) -> list[Node]:
    """Return the nodes that gave a buffer the strides that a storage has in it, the last one first."""
    nodes = [storage.node]
    while storage.relaid and (storage in model.made_by or storage.follows) and len(nodes) < _TRIALS:
        made_by = model.made_by.get(storage)
        storage = storage.follows[0] if made_by is None else made_by.operand.storage
        if storage.relaid:
            nodes.append(storage.node)
    return [n for n in nodes if n in model.relaid] or nodes[-1:]


def closed(model: Model, banned: dict[int, Refusal]) -> Decision:
    """Decide, then lift escapes until none is left."""
    bans, returned = dict(banned), dict[Node, int]()
    while True:
        decision = decide(model, bans)
        wrong = broken(decision)
        if wrong:
            bans.update(wrong)
            continue
        decision.returned = returned
        clones, refusals = Escapes(decision, returned).lift()
        returned.update(clones)
        if refusals:
            bans.update(refusals)
            continue
        # What only the graph's own copies write is not ours to refuse.
        misordered = decision.model.target.misordered(decision)
        if not misordered:
            return decision
        bans.update(misordered)


def _next_choice(decision: Decision, banned: dict[int, Refusal], tried: set[frozenset[int]]) -> int | None:
    """Return a candidate worth refusing instead of a dearer one, dearest refusal first."""
    candidates = decision.model.candidates
    for index in sorted(decision.refused, key=lambda i: -candidates[i].nbytes):
        refusal = decision.refused[index]
        for culprit in sorted(refusal.culprits, key=lambda i: candidates[i].nbytes):
            if culprit not in banned and frozenset({*banned, culprit}) not in tried:
                return culprit
    helped = [*(s.candidate for s in decision.snapshots), *(i for i, _, _ in decision.copied)]
    partly = (i for r in decision.refused.values() for i in sorted(r.partly))
    for index in dict.fromkeys((*helped, *decision.staged, *decision.instead, *partly)):
        if index not in banned and frozenset({*banned, index}) not in tried:
            return index
    return None


def _explained(decision: Decision, banned: dict[int, Refusal]) -> Decision:
    """Say of a candidate that was refused for the sake of others which ones these are."""
    candidates = decision.model.candidates
    for index in banned:
        if index in decision.model.fused or decision.refused[index].reason is not Reason.CHEAPER:
            continue
        others = {i: r for i, r in banned.items() if i != index}
        freed = tuple(
            candidates[i].node
            for i, refusal in decide(decision.model, others).refused.items()
            if i not in decision.refused and index in refusal.culprits
        )
        is_copy = candidates[index].kind.is_copy
        decision.refused[index] = Refusal(Reason.OVERWRITTEN if is_copy else Reason.CHEAPER, freed)
    return decision
