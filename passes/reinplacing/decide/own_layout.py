"""Leaving operators that stay functional the layout they have as written, where that is better.

A result that may take its operand's strides is expected to, and what uses it goes by that; refused, it has
other strides after all, and some uses of it cannot be in place for nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from torch.fx import Node

from ...reason import Reason
from ..facts import price
from ..facts.decision import Decision
from ..facts.model import Model
from ..facts.place import Storage
from .choose import anew

_ALONE = 4  # operators whose own layout is tried without the others'
_LONGEST = 48  # candidates that a layout is followed through


def own_layouts(decision: Decision) -> Iterator[Decision]:
    """Yield the best decision in which more operators keep their own layout.

    As good by its own count is better: a copy for the sake of another layout does not count as one.
    """
    model = decision.model
    refused = [model.candidates[i] for i in decision.refused]
    mine = {c.node for c in refused if c.obstacle is None and c.node in model.relaid}
    laid = {n for c in refused if c.obstacle is Reason.LAYOUT for n in _relaid_by(model, c.operand.storage)}
    sets = [frozenset(mine | laid)]
    if len(mine) <= _ALONE:  # one by one, many would each be decided anew
        sets.extend(frozenset({node}) for node in sorted(mine, key=model.order.__getitem__))
    trials = [_keeping(decision, nodes) for nodes in dict.fromkeys(sets) if nodes]
    if trials:
        yield min(trials, key=price.rank)


def _keeping(decision: Decision, nodes: frozenset[Node]) -> Decision:
    """Decide anew, with more nodes that keep their own layout; what is refused still has its first reason."""
    model = decision.model
    own = model.premises.own_layout | nodes
    trial = anew(model, own_layout=own)
    refused = ((model.candidates[i], refusal) for i, refusal in decision.refused.items())
    reasons = {(c.node, c.slot): r for c, r in refused if c.node in own}
    for candidate in trial.model.candidates:
        reason = reasons.get((candidate.node, candidate.slot))
        if reason is not None and candidate.index in trial.refused:
            trial.refused[candidate.index] = dataclasses.replace(reason, culprits=frozenset())
    return trial


def _relaid_by(model: Model, storage: Storage) -> list[Node]:
    """Return the node that gave a buffer the strides that a storage has in it, if any did."""
    for _ in range(_LONGEST):
        if storage.node in model.relaid:
            return [storage.node]
        made_by = model.made_by.get(storage)
        if not storage.relaid or (made_by is None and not storage.follows):
            break
        storage = storage.follows[0] if made_by is None else made_by.operand.storage
    return []
