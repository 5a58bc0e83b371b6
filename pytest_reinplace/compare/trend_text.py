"""Trends in words: as text for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base.markdown_cell import in_code, table_row, unmarked
from ..base.visible import visible
from ..base.wording import plural
from . import figure
from .comparison_text import aligned, fitting
from .trend import Trend

HEADS = ("test", "figure", "first", "last", "change", "trend")
_BARS = "▁▂▃▄▅▆▇█"
_GAP = "·"
_MOST_BARS = 16
_MOST_CHARACTERS = 60_000  # GitHub takes 65,536 in a comment


def text(trends: Sequence[Trend], names: Sequence[str]) -> Iterator[str]:
    """Yield the lines for a terminal.

    Args:
        trends: what is shown.
        names: those of the reports.
    """
    yield visible(_head(names))
    if not trends:
        yield "no test with a figure in any of them"
        return
    rows = [[visible(cell) for cell in (name, *_cells(trend))] for name, trend in _named(trends)]
    yield from aligned([HEADS, *rows])


def markdown(trends: Sequence[Trend], names: Sequence[str]) -> str:
    """Return the same for a comment, in less than 60,000 characters."""
    head = ["## History of reinplacing", "", unmarked(_head(names)), ""]
    if not trends:
        return "\n".join([*head, "No test has a figure in any of them.", ""])
    rows = [
        table_row([in_code(name) if name else "", *map(unmarked, _cells(trend))])
        for name, trend in _named(trends)
    ]
    head += [table_row(HEADS), "|" + " --- |" * len(HEADS)]
    return "\n".join([*head, fitting(rows, _MOST_CHARACTERS - sum(map(len, head)) - 100), ""])


def sparkline(values: Sequence[float | None]) -> str:
    """Return at most 16 bars from the least to the most; ``·`` where there is no figure.

    Of more reports each bar stands for several, and shows the last figure of them.
    """
    count = min(len(values), _MOST_BARS)
    parts = [values[i * len(values) // count : (i + 1) * len(values) // count] for i in range(count)]
    last = [next((value for value in reversed(part) if value is not None), None) for part in parts]
    known = [value for value in last if value is not None]
    low, high = min(known, default=0), max(known, default=0)
    span = high - low
    return "".join(
        _GAP if value is None else _BARS[round((value - low) / span * (len(_BARS) - 1)) if span else 0]
        for value in last
    )


def change(trend: Trend) -> str:
    """Return how much a figure changed from the first to the last report that could have it."""
    if trend.last is None:
        return "not in the last report"
    return "none" if trend.last == trend.first else figure.grown(trend.metric, trend.first, trend.last)


def _head(names: Sequence[str]) -> str:
    return (
        f"{plural(len(names), 'report')}, {names[0]} to {names[-1]}" if names[1:] else f"1 report, {names[0]}"
    )


def _named(trends: Sequence[Trend]) -> Iterator[tuple[str, Trend]]:
    """Yield each trend with the name of its test, which stands at its first one only."""
    before = None
    for trend in trends:
        yield "" if trend.nodeid == before else trend.nodeid, trend
        before = trend.nodeid


def _cells(trend: Trend) -> list[str]:
    last = "-" if trend.last is None else figure.shown(trend.metric, trend.last)
    first = figure.shown(trend.metric, trend.first)
    return [figure.wording_of(trend.metric), first, last, change(trend), sparkline(trend.values)]
