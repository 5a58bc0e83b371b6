"""From the graph before and after the pass under test to a report of what the pass did."""

from __future__ import annotations

import dataclasses
from collections.abc import Set
from typing import TYPE_CHECKING

from ..base.wording import bytes_of
from . import copied, shared
from .after import After
from .before import Before, Epilogue, Slot
from .fate import Fates

if TYPE_CHECKING:
    from torch.fx import Graph

    from ..passes import Outcome, Reason, Report


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """What a pass did to one graph.

    Args:
        report: one outcome per candidate; a clone that our analysis finds needless has the reason
            ``MISSED``, any other clone our reason. One in whose stead our pass makes a smaller copy is not
            needless: its reason is why any copy is made.
        suspicious: labels that the pass wrote in place although our analysis forbids it, or asks for a copy
            of what is returned.
    """

    report: Report
    suspicious: tuple[str, ...] = ()


def judge(before: Before, graph: Graph) -> Judgement:
    """Compare a rewritten graph with the functional one it was made from."""
    from ..passes import Report

    after, order = After(before, graph), {name: i for i, name in enumerate(before.nodes)}
    fates = Fates(before, after)
    found: list[Outcome] = []
    suspicious, instead = [], _instead(before, fates)
    for outcome in before.outcomes:
        in_place = fates.in_place(outcome.node, outcome.arg)
        if in_place and (_forbids(outcome.reason) or not after.runs_first(outcome.moved, outcome.node)):
            suspicious.append(outcome.label)
        if in_place or not outcome.allocates:
            found.append(_settled(outcome, in_place, instead.get(before.slot(outcome), ())))
    found = copied.told(found, before, fates)
    suspicious += [label for label in shared.labels(before, after) if label not in suspicious]
    found += [_left(e, before, found) for e in before.epilogues if after.has_copy(e)]
    found.sort(key=lambda outcome: order[outcome.node])
    found = [
        outcome if outcome.follows else _compared(outcome, found, instead.get(before.slot(outcome), ()))
        for outcome in found
    ]
    return Judgement(Report(tuple(found)).listed(), tuple(suspicious))


def left_functional(judgement: Judgement, why: str) -> Judgement:
    """Return what is said of a graph in which our pass wrote nothing: its hints do not name our pass.

    Args:
        judgement: what was found.
        why: why it wrote nothing; empty where Inductor did not refuse what it wrote.
    """
    from ..passes import Reason, Report

    hint = f"nothing is in place in this graph: {why}" if why else ""
    found = list(judgement.report.outcomes)
    for i, outcome in enumerate(found):
        if _our_pass() in outcome.hint:
            reason = Reason.LOWERING if why else outcome.reason
            found[i] = dataclasses.replace(outcome, reason=reason, blockers=(), hint=hint)
    return dataclasses.replace(judgement, report=Report(tuple(found)))


def _instead(before: Before, fates: Fates) -> dict[Slot, tuple[Outcome, ...]]:
    """Return the smaller copies that our pass makes, by what the pass under test copies instead.

    That is the call which our copies let write in place, or a clone before it, into which it writes.
    """
    cloned = {before.slot(o) for o in before.outcomes if not (o.allocates or fates.in_place(o.node, o.arg))}
    instead: dict[Slot, tuple[Outcome, ...]] = {}
    for slot, added in before.added.items():
        payer = next((s for s in (slot, *before.made_before(slot)) if s in cloned), slot)
        instead[payer] = (*instead.get(payer, ()), *added)
    return instead


def _settled(outcome: Outcome, in_place: bool, added: tuple[Outcome, ...]) -> Outcome:
    """Return our outcome with the decision of the pass under test; ``added`` is copied by us instead."""
    from ..passes import Reason

    if in_place == outcome.reinplaced or outcome.fused:
        return outcome  # what is fused is no copy when it stays functional, either
    if in_place:
        return dataclasses.replace(outcome, reinplaced=True, reason=None, blockers=(), hint="")
    blockers = outcome.moved
    if outcome.moved:
        # A pass that keeps the order still reads it; Inductor itself may have moved the reader behind it.
        reason, hint = Reason.STILL_READ, f"our pass reads it before the write: {_our_pass()}"
    elif added:  # a copy of what is in the way is less: its readers hold this back
        reason, hint, blockers = added[0].reason or Reason.MISSED, "", added[0].blockers
    else:
        reason, hint = Reason.MISSED, Reason.MISSED.hint
    return dataclasses.replace(
        outcome, reinplaced=False, reason=reason, blockers=blockers, moved=(), hint=hint
    )


def _compared(outcome: Outcome, found: list[Outcome], added: tuple[Outcome, ...]) -> Outcome:
    """Return a clone in whose stead our pass makes other copies, ``added``, with both sizes in its hint."""
    if outcome.reinplaced or not added:
        return outcome
    ours = sum(copy.nbytes for copy in added)
    followers = [o for o in found if o.follows == outcome.named]
    theirs = outcome.nbytes + sum(o.nbytes for o in followers)
    ops = ", ".join(dict.fromkeys("what is returned" if c.op == "output" else c.op for c in added))
    if ours < theirs:
        whole = f"{bytes_of(theirs)} here" + (" and for what follows" if followers else "")
        copied = f"our pass copies {bytes_of(ours)}, for {ops}, instead of {whole}"
        hint = f"{copied}: {_our_pass()}; that copy is still a clone"
    else:
        hint = added[0].hint
    return dataclasses.replace(outcome, hint=hint)


def _our_pass() -> str:
    """Return how to get our pass, in tests and for users."""
    from ..passes import Reason

    return Reason.MISSED.hint.partition(": ")[2]


def _left(epilogue: Epilogue, before: Before, found: list[Outcome]) -> Outcome:
    """Return the outcome of a write-back that the pass left a copy; ``found`` are those of the candidates."""
    from ..passes import Outcome, Reason

    clones = [o for o in found if not o.reinplaced]
    causes = (o for slot in reversed(epilogue.via) for o in clones if before.slot(o) == slot)
    cause = next(causes, None)
    if cause is None and epilogue.outcome is not None and epilogue.outcome.follows is None:
        return epilogue.outcome
    return Outcome(
        label="aten::copy_.self",
        op="aten::copy_",
        arg="self",
        node=epilogue.node,
        reinplaced=False,
        nbytes=epilogue.nbytes,
        reason=Reason.MISSED if cause is None else Reason.FOLLOWS,
        source=epilogue.source or _source_of({name for name, _ in epilogue.via}, before),
        hint=Reason.MISSED.hint if cause is None else "",
        follows=None if cause is None else cause.named,
    )


def _source_of(nodes: Set[str], before: Before) -> str | None:
    lines = (o.source for o in before.outcomes if o.node in nodes and o.source is not None)
    return next(lines, None)


def _forbids(reason: Reason | None) -> bool:
    """Return whether a reason says that writing in place computes something else."""
    from ..passes import Reason

    return reason in {
        Reason.STILL_READ,
        Reason.INPUT_KEPT,
        Reason.SAME_NODE,
        Reason.CLOBBERED,
        Reason.OVERWRITTEN,
        Reason.IN_FLIGHT,
        Reason.ESCAPES,
        Reason.SELF_OVERLAP,
    }
