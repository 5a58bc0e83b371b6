"""What the terminal says of measured entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from ..base.visible import visible
from . import table, update
from .result import results_of

if TYPE_CHECKING:
    from ..record.record import Record

_WIDTH = 2000


def summarize(terminal: pytest.TerminalReporter, records: Sequence[Record], updated: Sequence[str]) -> None:
    """Print a table for each entry, what should be known of it, and which baselines were recorded."""
    results = list(results_of(records))
    if results:
        terminal.section("reinplace measured")
    for result in results:
        found = result.measurement
        terminal.line(f"{visible(found.entry, _WIDTH)} on {found.device}", bold=True)
        for i, line in enumerate(table.lines(found)):
            terminal.line(f"  {visible(line, _WIDTH)}", bold=i == 0)
        for line in result.ruling.excesses:
            terminal.line(f"  {visible(line, _WIDTH)}", red=True)
        for line in result.ruling.remarks:
            terminal.line(f"  {visible(line, _WIDTH)}", yellow=True)
    if updated:
        terminal.section("reinplace baselines")
        for line in updated:
            terminal.line(visible(line, _WIDTH), red=update.failed([line]))
