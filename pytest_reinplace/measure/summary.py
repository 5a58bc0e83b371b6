"""What the terminal says of measured entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from ..comparison import shown
from ..visible import visible
from . import update
from .figures import Measurement
from .result import results_of

if TYPE_CHECKING:
    from ..record import Record

_WIDTH = 2000
_COLUMNS = ("", "clones", "clone bytes", "peak", "runtime", "moves", "of copy", "compile")


def summarize(terminal: pytest.TerminalReporter, records: Sequence[Record], updated: Sequence[str]) -> None:
    """Print a table for each entry, what should be known of it, and which baselines were recorded."""
    terminal.section("reinplace measured")
    for result in results_of(records):
        found = result.measurement
        terminal.line(f"{visible(found.entry, _WIDTH)} on {found.device}", bold=True)
        for line in table(found):
            terminal.line(f"  {visible(line, _WIDTH)}")
        for line in result.ruling.excesses:
            terminal.line(f"  {visible(line, _WIDTH)}", red=True)
        for line in result.ruling.remarks:
            terminal.line(f"  {visible(line, _WIDTH)}", yellow=True)
    if updated:
        terminal.section("reinplace baselines")
        for line in updated:
            terminal.line(visible(line, _WIDTH), red=update.failed([line]))


def table(found: Measurement) -> Iterator[str]:
    """Yield the lines of a table, aligned."""
    rows = [_COLUMNS, *(cells(found, name) for name in found.sides)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    for row in rows:
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join([first.strip().ljust(widths[0]), *rest])


def cells(found: Measurement, name: str) -> tuple[str, ...]:
    """Return what a table shows of a side."""
    side = found.sides[name]
    fraction = found.bandwidth_fraction(name)
    return (
        name,
        "-" if side.clones is None else str(side.clones),
        "-" if side.clone_bytes is None else shown("clone_bytes", side.clone_bytes),
        shown("peak_bytes", side.peak_bytes),
        "-" if side.runtime is None else shown("runtime", side.runtime),
        "-" if side.moved_bytes is None else shown("peak_bytes", side.moved_bytes),
        "-" if fraction is None else f"{100 * fraction:.0f} %",
        "-" if side.compile_seconds is None else f"{side.compile_seconds:.1f} s",
    )
