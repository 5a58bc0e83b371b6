"""Two reports beside each other: what changed, test by test, and which limits that exceeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from ..base import wording
from ..base.nearest import nearest
from ..record import ledgers
from ..record.figures import STOCK
from ..record.paired import Ratio, ratio
from ..record.stored import Stored, StoredTest
from . import conditions
from .clones import NEW, Change, Clone, match, told
from .figure import TIMES, change, grown, shown, wording_of
from .limit import MATCHES, METRICS, NEW_CLONES, OF_LOWERING, OF_TWO_REPORTS, REMOVED_TESTS, Limit

_NAMES = 5
Figures = Mapping[str, int | float]
Bound = Literal["held", "exceeded", "not compared", "not judged everywhere"]


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One test that is in both reports.

    Args:
        nodeid: its id.
        old: its figures before, by metric; one that was not measured is missing.
        new: its figures now.
        excesses: what is over a limit, a sentence each.
        remarks: what else a reader should know, a sentence each.
        advice: what may be worse and cannot be judged, a sentence each.
        clones: those of its clones that are not the same, the largest first.
        exceeded: the texts of the limits that are exceeded.
        is_judged: whether its figures can be believed; where not, the excesses say why.
    """

    nodeid: str
    old: Figures
    new: Figures
    excesses: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    clones: tuple[Change, ...] = ()
    exceeded: tuple[str, ...] = ()
    is_judged: bool = True

    @property
    def refused(self) -> bool:
        """Whether more clones are new than a limit allows; then the excesses tell of the new ones."""
        return any(text.startswith(f"{NEW_CLONES}:") for text in self.exceeded)

    @property
    def changed(self) -> list[str]:
        """The metrics whose figures differ, in the order of ``METRICS``; not how long passes took."""
        metrics = (metric for metric in METRICS if metric != "pass_seconds")
        return [metric for metric in metrics if self.old.get(metric) != self.new.get(metric)]

    @property
    def improved(self) -> list[str]:
        """The exact metrics that are better now, if no limit is exceeded. Times differ at every run."""
        both = [m for m in METRICS if m in self.old and m in self.new and m not in TIMES]
        return [] if self.remarks or self.excesses else [m for m in both if self.new[m] < self.old[m]]


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """Two reports beside each other.

    Args:
        old_name: where the old report comes from.
        new_name: where the new one does.
        limits: what was held against it.
        rows: the tests that are in both, by id.
        added: the ids of tests that only the new report has; no limit is held against them.
        removed: the ids of tests that only the old report has; ``removed_tests`` limits those that had
            candidates.
        failures: what is wrong with the comparison as a whole, a sentence each.
        lost: the texts of the limits that removed tests exceed.
        remarks: what differs between the reports as a whole, and may be why figures differ, a sentence each.
    """

    old_name: str
    new_name: str
    limits: tuple[Limit, ...]
    rows: tuple[Row, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    failures: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def bounds(self) -> dict[str, Bound]:
        """What became of each limit, by its text."""
        return {limit.text: self._bound(limit) for limit in self.limits}

    def _bound(self, limit: Limit) -> Bound:
        if limit.text in self.lost or any(limit.text in row.exceeded for row in self.rows):
            return "exceeded"
        if limit.metric == REMOVED_TESTS:
            return "held"
        is_always = limit.metric in (*OF_TWO_REPORTS, MATCHES)
        if not any(is_always or limit.metric in row.old for row in self.rows):
            return "not compared"
        is_timed = limit.metric == "runtime"
        is_open = any(not row.is_judged or (is_timed and row.advice) for row in self.rows)
        return "not judged everywhere" if is_open else "held"

    @property
    def passed(self) -> bool:
        """Whether no limit is exceeded."""
        return not self.failures and not any(row.excesses for row in self.rows)

    @property
    def metrics(self) -> list[str]:
        """The metrics that any test has."""
        known = {metric for row in self.rows for metric in (*row.old, *row.new)}
        return [metric for metric in METRICS if metric in known]

    def total(self, metric: str) -> tuple[int | float, int | float]:
        """Return a metric, before and now, added up over the tests that have it in both reports."""
        both = [row for row in self.rows if metric in row.old and metric in row.new]
        return sum(row.old[metric] for row in both), sum(row.new[metric] for row in both)


def compare(old: Stored, new: Stored, limits: Sequence[Limit] = ()) -> Comparison:
    """Compare two reports and hold the limits against every test that is in both."""
    removed = tuple(nodeid for nodeid in old.tests if nodeid not in new.tests)
    common = [nodeid for nodeid in new.tests if nodeid in old.tests]
    rows = tuple(_row(nodeid, old.tests[nodeid], new.tests[nodeid], limits) for nodeid in common)
    lost = dict(_lost([old.tests[nodeid] for nodeid in removed], limits))
    return Comparison(
        old.name,
        new.name,
        tuple(limits),
        rows,
        added=tuple(nodeid for nodeid in new.tests if nodeid not in old.tests),
        removed=removed,
        failures=(
            *_vacuous(rows, limits),
            *_unfired([one.tests[nodeid] for one in (old, new) for nodeid in common], limits),
            *lost.values(),
        ),
        lost=tuple(lost),
        remarks=tuple(conditions.remarks(old, new, [row.nodeid for row in rows])),
    )


def _vacuous(rows: Sequence[Row], limits: Sequence[Limit]) -> Iterator[str]:
    """Yield which limits were held against nothing: such a gate would always be open."""
    if limits and not rows:
        yield "no test is in both reports, so nothing was compared"
        return
    for limit in limits:
        is_figure = limit.metric in METRICS and limit.metric not in OF_TWO_REPORTS
        if limit.required and is_figure and not any(limit.metric in row.old for row in rows):
            how = "; --reinplace-ledger records it" if limit.needs_ledger else ""
            if limit.metric in OF_LOWERING:
                how = "; only tests with backend inductor have"
            if limit.needs_memory:
                how = "; --reinplace-memory records it, of what reinplace.run and assert_peak call"
            yield f"{limit.text}: no compared test has {limit.metric} in the old report{how}"


def _unfired(tests: Sequence[StoredTest], limits: Iterable[Limit]) -> Iterator[str]:
    """Yield which limits are about a rule that never fired: it may be that nothing is called so."""
    for limit in limits:
        if limit.metric != MATCHES or not tests:
            continue
        known = [ledgers.applications_of(test.record.graphs) for test in tests]
        names = {name for found in known for one in found or () for name in ledgers.names_in(one)}
        if all(found is None for found in known):
            yield f"{limit.text}: neither report says which rules fired; --reinplace-ledger records it"
        elif not any(ledgers.matches_of(test.record.graphs, limit.rule) for test in tests):
            near = nearest(limit.rule, sorted(names)) if names else ""
            yield f"{limit.text}: no rule or pass called {limit.rule!r} fired in either report{near}"


def _lost(removed: Sequence[StoredTest], limits: Iterable[Limit]) -> Iterator[tuple[str, str]]:
    """Yield the limits that do not allow that tests with candidates are gone, with a sentence each.

    No other limit is held against those.
    """
    names = [test.record.nodeid for test in removed if test.record.outcomes]
    for limit in limits:
        if limit.metric == REMOVED_TESTS and limit.is_exceeded(0, len(names)):
            some = ", ".join(names[:_NAMES])
            more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
            yield (
                limit.text,
                f"{wording.plural(len(names), 'removed test')} with candidates: {some}{more}; allowed is "
                f"{limit.text}. If they were renamed, or are to go, make the old report anew or allow as "
                "many",
            )


def _row(nodeid: str, old: StoredTest, new: StoredTest, limits: Iterable[Limit]) -> Row:
    before, now = old.figures, new.figures
    limits = list(limits)
    unjudged = tuple(_unjudged(old, new))
    clones = tuple(_clones(old, new, is_whole=not unjudged))
    over: dict[str, list[str]] = {}
    advice: list[str] = []
    for limit in sorted(limits, key=_turn):
        texts = list(_told(limit, old, new, clones))
        if limit.metric == "runtime" and _is_timed(old, new) and not _is_interleaved(old, new):
            advice += texts
        elif texts:
            over.setdefault(limit.text, []).extend(texts)
    remarks = tuple(_remarks(old, new))
    if not limits:
        return Row(nodeid, before, now, (), (*unjudged, *remarks), (), clones)
    excesses = (*unjudged, *(text for texts in over.values() for text in texts))
    return Row(nodeid, before, now, excesses, remarks, tuple(advice), clones, tuple(over), not unjudged)


def _turn(limit: Limit) -> int:
    """Sort what is told first: new clones, then exact figures, then runtime."""
    return {NEW_CLONES: 0, "runtime": 2}.get(limit.metric, 1)


def _told(limit: Limit, old: StoredTest, new: StoredTest, clones: Iterable[Change]) -> Iterator[str]:
    """Yield why a limit is exceeded, a sentence each."""
    if limit.metric == NEW_CLONES:
        yield from _new_clones(clones, limit)
    elif limit.metric == "runtime" and _is_timed(old, new):
        yield from _slower(limit, old, new)
    elif limit.metric == MATCHES:
        yield from _fewer(old, new, limit)
    else:
        by = _more_by(old, new) if limit.metric == "pass_copies" else ""
        yield from (text + by for text in _excesses(old.figures, new.figures, limit))


def _more_by(old: StoredTest, new: StoredTest) -> str:
    """Return which rules and passes bring more copies than before, to be put behind a sentence."""
    before, now = (ledgers.copies_by(test.record.graphs) for test in (old, new))
    more = [f"{name} {before[name]} → {now[name]}" for name in sorted(now) if now[name] > before[name]]
    return f"; more by {', '.join(more)}" if more else ""


def _fewer(old: StoredTest, new: StoredTest, limit: Limit) -> Iterator[str]:
    """Yield that a rule fires less often than before, where the limit does not allow it."""
    before, now = (ledgers.matches_of(test.record.graphs, limit.rule) for test in (old, new))
    if before and now is None:
        yield f"{limit.rule} fired {_times(before)} before, not recorded now ({limit.text})"
    elif before and now is not None and limit.is_exceeded(now, before):
        yield f"{limit.rule} fired {_times(before)} before, {_times(now)} now; allowed is {limit.text}"


def _times(count: int) -> str:
    return wording.plural(count, "time")


def _is_timed(old: StoredTest, new: StoredTest) -> bool:
    return "runtime" in old.figures and "runtime" in new.figures


def _clones(old: StoredTest, new: StoredTest, is_whole: bool) -> Iterator[Change]:
    """Yield what became of the clones that are not the same; what was not seen as a whole has lost none."""
    before, now = (map(Clone.of, test.record.clones) for test in (old, new))
    for found in match(before, now):
        if found.kind != "same" and (is_whole or found.kind != "gone"):
            yield found


def _new_clones(changes: Iterable[Change], limit: Limit) -> Iterator[str]:
    """Yield which clones are new, and what they replace, where the limit allows fewer."""
    new = [one for one in changes if one.is_new]
    if limit.is_exceeded(0, len(new)):
        found = told(new, f"; allowed is {limit.text}")
        yield from (f"{NEW[change.kind]} {text}" for change, text in found)


def _is_interleaved(old: StoredTest, new: StoredTest) -> bool:
    """Return whether both runs timed Inductor's side as well: its share says what the machine did."""
    return all(
        test.sides is not None and test.sides.pass_name != STOCK and STOCK in test.sides.sides
        for test in (old, new)
    )


def _slower(limit: Limit, old: StoredTest, new: StoredTest) -> Iterator[str]:
    """Yield why a test became slower: surely, beside Inductor's side; or by seconds, which may mislead."""
    if not _is_interleaved(old, new):
        before, now = old.measured["runtime"], new.measured["runtime"]
        if limit.is_exceeded(before, now):
            both = "runtime", before, now
            yield (
                f"runtime {change(*both)}, {grown(*both)}, is over {limit.text}: no failure, for the two "
                "runs timed nothing side by side"
            )
        return
    usual, found = (_beside_stock(test) for test in (old, new))
    if usual and found and found.low > usual.high * (1 + float(limit.amount) / 100):
        yield (
            f"runtime {usual.median:.3f} → {found.median:.3f} times that of {STOCK}'s pass in the same run "
            f"(surely {found.low:.3f} at least); allowed is {limit.text}"
        )


def _beside_stock(test: StoredTest) -> Ratio | None:
    assert test.sides is not None
    return ratio(test.sides.tested.times, test.sides.sides[STOCK].times)


def _unjudged(old: StoredTest, new: StoredTest) -> Iterator[str]:
    """Yield why the new figures are too low to be believed: what shows nothing now is not better."""
    if old.record.graphs and not new.record.graphs:
        yield f"{wording.plural(len(old.record.graphs), 'graph')} before, none was compiled now"
    known = {graph["problem"] for graph in old.record.graphs}
    for graph in new.record.graphs:
        if graph["problem"] and graph["problem"] not in known:
            yield f"graph {graph['graph']} could not be judged: {graph['problem']}"
    graphs = new.record.graphs
    if old.record.outcomes and graphs and not (new.record.outcomes or any(g["problem"] for g in graphs)):
        gone = f"{wording.plural(len(old.record.outcomes), 'candidate')} before, none now"
        yield f"{gone}: the pass is not exercised any more; if that is meant, make the old report anew"


def _excesses(old: Figures, new: Figures, limit: Limit) -> Iterator[str]:
    metric = limit.metric
    if metric not in old:
        return
    name = wording_of(metric)
    if metric not in new:
        yield f"{name} {shown(metric, old[metric])} before, not measured now ({limit.text})"
    elif limit.is_exceeded(old[metric], new[metric]):
        both = metric, old[metric], new[metric]
        yield f"{name} {change(*both)}, {grown(*both)}; allowed is {limit.text}"


def _remarks(old: StoredTest, new: StoredTest) -> Iterator[str]:
    if new.record.outcome != old.record.outcome:
        yield f"{old.record.outcome} before, {new.record.outcome} now"
