"""What was measured, as Markdown: what is over a limit first, then a row for each entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..base.markdown_cell import in_code, table_row
from ..measure import table
from ..measure.result import Result


def results(report: Mapping[str, Any]) -> list[tuple[str, Result]]:
    """Return what was measured, by test id."""
    tests = sorted(report["tests"].items())
    return [(test, Result.from_dict(data["measured"])) for test, data in tests if data.get("measured")]


def told(found: Sequence[tuple[str, Result]]) -> Iterator[str]:
    """Yield what is over a limit and what else should be known, a list each."""
    for title, name in (("Over the limit", "excesses"), ("To know", "remarks")):
        lines = [
            f"- {in_code(test)}: {in_code(line)}"
            for test, result in found
            for line in getattr(result.ruling, name)
        ]
        if lines:
            yield f"### {title}\n\n" + "\n".join(lines) + "\n"


def heads(found: Sequence[tuple[str, Result]]) -> tuple[str, ...]:
    """Return the heads over :func:`rows`."""
    return ("entry", *table.columns(result.measurement for _, result in found))


def rows(found: Sequence[tuple[str, Result]]) -> Iterator[str]:
    """Yield a row for each side of each entry."""
    _, *columns = heads(found)
    for _, result in found:
        entry = in_code(result.measurement.entry)
        for cells in table.rows(result.measurement, columns):
            yield table_row([entry, in_code(cells[0]), *cells[1:]])
            entry = ""
