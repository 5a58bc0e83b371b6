"""Verdicts on captured graphs: what was expected, what came, and whether that is all right."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..base import wording
from ..base.nearest import nearest
from ..call.failure import uncompiled
from ..copies import allowed

if TYPE_CHECKING:
    from ..base.tolerance import Tolerance
    from ..capture.captured import CapturedGraph
    from ..lowered.memory import Memory
    from ..passes import Outcome

_MOST_DIFFERENCES = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What an assertion found.

    Args:
        problems: what is wrong, one line each; empty when nothing is.
        explained: the clones to explain below them.
        details: what else is to be said below, line by line.
        origin: which pass and backend, for the reader.
        advice: the last line, empty where there is none.
    """

    problems: tuple[str, ...] = ()
    explained: tuple[Outcome, ...] = ()
    origin: str = ""
    advice: str = ""
    details: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        """Return the failure text: what differs, then each clone with bytes, reason and blockers."""
        first, *rest = self.problems or ("as expected",)
        lines = [f"{first} ({self.origin})" if self.origin else first, *rest]
        lines += [*wording.explained(self.explained), *self.details]
        lines += [self.advice] if self.advice else []
        return "\n".join(lines)


def unexercised(graphs: Sequence[CapturedGraph]) -> str:
    """Return why graphs tell nothing about a pass; empty when they do."""
    if not graphs:
        return uncompiled("so the pass was not exercised")
    for graph in graphs:
        if graph.problem:
            return f"graph {graph.id} could not be judged: {graph.problem}"
    if not any(graph.report.outcomes for graph in graphs):
        found = wording.plural(len(graphs), "compiled graph")
        noun = "the graph writes" if len(graphs) == 1 else "the graphs write"
        writes = f"{noun} nothing: no mutating operator, index_put or view scatter"
        return f"no candidate in {found}, so the pass was not exercised: {writes}"
    return ""


def suspects(graphs: Iterable[CapturedGraph]) -> tuple[str, ...]:
    """Return a line for each graph in which the pass wrote in place although our analysis forbids it."""
    return tuple(graph.suspicion for graph in graphs if graph.suspicion)


def exercised(graphs: Sequence[CapturedGraph], origin: str = "") -> Verdict:
    """Judge that graphs tell something about a pass, and that it wrote nothing that our analysis forbids."""
    problem = unexercised(graphs)
    return Verdict((problem,) if problem else suspects(graphs), origin=origin)


def outcomes_of(graphs: Iterable[CapturedGraph]) -> list[Outcome]:
    """Return the outcomes of several graphs, in their order; a list that a hint gives is of them all."""
    from ..passes import Report

    return list(Report.joined(graph.report for graph in graphs).listed().outcomes)


def all_in_place(graphs: Sequence[CapturedGraph], origin: str = "") -> Verdict:
    """Judge that every candidate is in place."""
    if problem := unexercised(graphs):
        return Verdict((problem,), origin=origin)
    clones = [o for o in outcomes_of(graphs) if not o.reinplaced]
    problems = (*suspects(graphs), *([_not_in_place(clones)] if clones else ()))
    return Verdict(problems, tuple(clones), origin)


def named_in_place(graphs: Sequence[CapturedGraph], names: Sequence[str], origin: str = "") -> Verdict:
    """Judge that the candidates named by label or by bare argument are in place, all that bear the name."""
    if problem := unexercised(graphs):
        return Verdict((problem,), origin=origin)
    outcomes = outcomes_of(graphs)
    clones = [o for o in outcomes if not o.reinplaced and any(o.bears(name) for name in names)]
    problems = [*suspects(graphs)]
    if clones:
        problems.append(_not_in_place(clones))
    problems += all_known(graphs, names).problems
    return Verdict(tuple(problems), tuple(clones), origin)


def all_known(graphs: Sequence[CapturedGraph], names: Sequence[str], origin: str = "") -> Verdict:
    """Judge that there are candidates of these names, labels or bare arguments."""
    outcomes = outcomes_of(graphs)
    labels = list(dict.fromkeys(o.label for o in outcomes))
    found = [_unknown(name, labels) for name in names if not any(o.bears(name) for o in outcomes)]
    return Verdict(tuple(found), origin=origin)


def _unknown(name: str, labels: Iterable[str]) -> str:
    return f"no candidate is called {name!r}{nearest(name, labels)}"


def _no_labels(names: Iterable[str], outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield what is wrong with names of a list that are no labels."""
    labels = list(dict.fromkeys(o.label for o in outcomes))
    for name in dict.fromkeys(names):
        if name not in labels:
            meant = dict.fromkeys(o.label for o in outcomes if o.bears(name))
            is_no_label = (
                f"{name!r} is no label: a list has whole labels; it may mean {wording.listed(meant)}"
            )
            yield is_no_label if meant else _unknown(name, labels)


def clones_are(graphs: Sequence[CapturedGraph], expected: Iterable[str], origin: str = "") -> Verdict:
    """Judge that exactly the expected labels stayed clones, each as often as it is listed, in any order."""
    if problem := unexercised(graphs):
        return Verdict((problem,), origin=origin)
    outcomes = outcomes_of(graphs)
    clones = [o for o in outcomes if not o.reinplaced]
    wanted, came = Counter(expected), Counter(o.label for o in clones)
    unexpected, missing = came - wanted, wanted - came
    forbidden = suspects(graphs)
    if not unexpected and not missing:
        return Verdict(forbidden, origin=origin)
    explained = tuple(o for o in clones if o.label in unexpected)
    lists = (
        (f"expected {sorted(wanted.elements())}", f"got      {[o.label for o in clones]}") if missing else ()
    )
    wrong = _no_labels(missing, outcomes)
    # What may be miscompiled is nothing to be expected.
    advice = "" if forbidden else wording.UPDATE
    return Verdict((*forbidden, wording.difference(wanted, came), *wrong, *lists), explained, origin, advice)


def within(
    graphs: Sequence[CapturedGraph],
    max_clones: int | None = None,
    max_clone_bytes: int | None = None,
    origin: str = "",
) -> Verdict:
    """Judge that there are no more clones, and no more bytes of them, than allowed."""
    if problem := unexercised(graphs):
        return Verdict((problem,), origin=origin)
    clones = [o for o in outcomes_of(graphs) if not o.reinplaced]
    size, problems = sum(o.nbytes for o in clones), [*suspects(graphs)]
    if max_clones is not None and len(clones) > max_clones:
        problems.append(f"{wording.plural(len(clones), 'clone')}; the limit is max_clones={max_clones}")
    if max_clone_bytes is not None and size > max_clone_bytes:
        problems.append(f"{wording.bytes_of(size)} cloned; the limit is max_clone_bytes={max_clone_bytes}")
    return Verdict(tuple(problems), tuple(clones) if problems else (), origin)


def copies_known(graphs: Sequence[CapturedGraph], origin: str = "") -> Verdict:
    """Judge that it is known which copies lowering adds."""
    problem = allowed.unknown(graphs)
    return Verdict((problem,) if problem else (), origin=origin)


def copies_are(graphs: Sequence[CapturedGraph], expected: Iterable[str], origin: str = "") -> Verdict:
    """Judge that lowering adds exactly the expected copies, by their labels, in any order."""
    if problem := allowed.unknown(graphs):
        return Verdict((problem,), origin=origin)
    problems, details = allowed.difference(graphs, expected)
    return Verdict(problems, origin=origin, details=details)


def copies_within(
    graphs: Sequence[CapturedGraph],
    max_copies: int | None = None,
    max_copy_bytes: int | None = None,
    origin: str = "",
) -> Verdict:
    """Judge that lowering adds no more copies, and no more bytes of them, than allowed."""
    if problem := allowed.unknown(graphs):
        return Verdict((problem,), origin=origin)
    problems, details = allowed.excess(graphs, max_copies, max_copy_bytes)
    return Verdict(problems, origin=origin, details=details)


def peaks_within(peaks: Sequence[int], most: int, origin: str = "") -> Verdict:
    """Judge that no measured call held more bytes than allowed; one that nothing measured does not pass."""
    if not peaks:
        return Verdict(
            ("nothing was measured: max_peak_bytes limits the calls of reinplace.run(fn, *args)",),
            origin=origin,
        )
    if max(peaks) <= most:
        return Verdict(origin=origin)
    return Verdict(
        (f"{wording.bytes_of(max(peaks))} at the peak; the limit is max_peak_bytes={most}",), (), origin
    )


def peaks_over_bound(memories: Sequence[Memory], backend: str, most: float, origin: str = "") -> Verdict:
    """Judge that no measured call held more than so many times its lower bound, which has to be known."""
    from ..lowered import over_bound

    if problem := over_bound.unknown(memories, backend):
        return Verdict((problem,), origin=origin)
    return Verdict(tuple(over_bound.excess(memories, most)), origin=origin)


def uncompared(origin: str = "") -> Verdict:
    """Judge that a test with a tolerance compared nothing: it does not pass."""
    calls = "reinplace.run(fn, *args), assert_reinplaced(fn, *args) and assert_clones(fn, *args)"
    return Verdict((f"nothing was compared: tolerance holds the calls {calls} against eager",), origin=origin)


def as_eager(differences: Sequence[str], tolerance: Tolerance, origin: str = "") -> Verdict:
    """Judge that a compiled call did what the eager one did; ``differences`` are most telling first."""
    if not differences:
        return Verdict(origin=origin)
    shown = [f"  {text}" for text in differences[:_MOST_DIFFERENCES]]
    if len(differences) > _MOST_DIFFERENCES:
        shown.append(f"  and {len(differences) - _MOST_DIFFERENCES} more")
    head = f"the compiled call differs from eager, allowed is tolerance {tolerance}"
    return Verdict((head, *shown), origin=origin)


def _not_in_place(clones: Sequence[Outcome]) -> str:
    count = wording.plural(len(clones), "candidate")
    return f"{count} not in place: {wording.listed(o.label for o in clones)}"
