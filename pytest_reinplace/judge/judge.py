"""From the graph before and after the pass under test to a report of what the pass did."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..base.wording import bytes_of
from .after import After
from .before import Before, Epilogue
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
        suspicious: labels that the pass wrote in place although our analysis forbids it.
    """

    report: Report
    suspicious: tuple[str, ...] = ()


def judge(before: Before, graph: Graph) -> Judgement:
    """Compare a rewritten graph with the functional one it was made from."""
    from ..passes import Report

    after, order = After(before, graph), {name: i for i, name in enumerate(before.nodes)}
    fates = Fates(before, after)
    found: list[Outcome] = []
    suspicious = []
    for outcome in before.outcomes:
        in_place = fates.in_place(outcome.node, outcome.arg)
        if in_place and (_forbids(outcome.reason) or not after.runs_first(outcome.moved, outcome.node)):
            suspicious.append(outcome.label)
        if in_place or not outcome.allocates:
            found.append(_settled(outcome, in_place, before))
    found += [_left(e, before) for e in before.epilogues if after.has_copy(e)]
    found.sort(key=lambda outcome: order[outcome.node])
    return Judgement(Report(tuple(found)), tuple(suspicious))


def _settled(outcome: Outcome, in_place: bool, before: Before) -> Outcome:
    """Return our outcome with the decision of the pass under test."""
    from ..passes import Reason

    if in_place == outcome.reinplaced or outcome.fused:
        return outcome  # what is fused is no copy when it stays functional, either
    if in_place:
        return dataclasses.replace(outcome, reinplaced=True, reason=None, blockers=(), hint="")
    blockers = outcome.moved
    if outcome.moved:
        # Our pass would read the old value first; for one that keeps the order it is still read.
        reason = Reason.STILL_READ
        # Where Inductor moved the reader behind the write, only this helps: the program reads first already.
        hint = f"{reason.hint}, or {Reason.MISSED.hint}"
    else:
        reason, hint = _why(before.added.get(outcome.node, ()), outcome.nbytes)
    return dataclasses.replace(
        outcome, reinplaced=False, reason=reason, blockers=blockers, moved=(), hint=hint
    )


def _why(added: tuple[Outcome, ...], nbytes: int) -> tuple[Reason, str]:
    """Return reason and hint of a clone that our pass avoids, or replaces by smaller copies."""
    from ..passes import Reason

    if not added:
        return Reason.MISSED, Reason.MISSED.hint
    first, size = added[0], sum(outcome.nbytes for outcome in added)
    reason = first.reason or Reason.MISSED
    if reason is Reason.STILL_READ and len(first.blockers) > 1:
        reason = Reason.CLOBBERED  # what is kept is the result, before a later write into the input
    ops = ", ".join(dict.fromkeys(outcome.op for outcome in added))
    ours, theirs = (bytes_of(count).partition(" (")[0] for count in (size, nbytes))
    return reason, f"our pass copies {ours} (for {ops}) instead of {theirs}: {Reason.MISSED.hint}"


def _left(epilogue: Epilogue, before: Before) -> Outcome:
    """Return the outcome of a write-back that the pass left a copy."""
    from ..passes import Outcome

    if epilogue.outcome is not None:
        return epilogue.outcome
    added = next((before.added[n] for n in epilogue.via if n in before.added), ())
    reason, hint = _why(added, epilogue.nbytes)
    return Outcome(
        label="aten::copy_.self",
        op="aten::copy_",
        arg="self",
        node=epilogue.node,
        reinplaced=False,
        nbytes=epilogue.nbytes,
        reason=reason,
        source=epilogue.source or _source_of(epilogue.via, before),
        hint=hint,
    )


def _source_of(nodes: tuple[str, ...], before: Before) -> str | None:
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
