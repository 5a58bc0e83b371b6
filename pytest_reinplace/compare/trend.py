"""How the figures of each test went over several reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..record.stored import Stored, StoredTest
from .limit import METRICS, OF_TWO_REPORTS

FIGURES = tuple(metric for metric in METRICS if metric not in OF_TWO_REPORTS)


@dataclasses.dataclass(frozen=True, slots=True)
class Trend:
    """One figure of one test.

    Args:
        nodeid: the test.
        metric: which figure: clones or copies, bytes, or seconds for ``"runtime"`` and ``"pass_seconds"``.
        values: the figure in each report; ``None`` where there is none.
    """

    nodeid: str
    metric: str
    values: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        """The figures that there are, in the order of the reports."""
        return [value for value in self.values if value is not None]

    @property
    def first(self) -> float:
        """The first figure that there is."""
        return self.known[0]

    @property
    def last(self) -> float | None:
        """The figure in the last report; ``None`` where that has none."""
        return self.values[-1]


def figures_of(test: StoredTest | None) -> dict[str, int | float]:
    """Return a test's figures by metric, none where it is missing.

    What compiled nothing, or could not be judged, has no clones to count: that is no figure, and no zero.
    """
    if test is None:
        return {}
    graphs = test.record.graphs
    is_judged = bool(graphs) and not any(graph.get("problem") for graph in graphs)
    return test.figures if is_judged else dict(test.measured)


def trends(reports: Sequence[Stored]) -> list[Trend]:
    """Return the trends that have a figure in any report, by test, in the order of ``FIGURES``."""
    names = sorted({name for report in reports for name in report.tests})
    found = []
    for name in names:
        figures = [figures_of(report.tests.get(name)) for report in reports]
        every = [Trend(name, metric, tuple(one.get(metric) for one in figures)) for metric in FIGURES]
        found += [trend for trend in every if trend.known]
    return found
