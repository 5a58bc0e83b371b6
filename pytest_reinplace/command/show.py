"""``pytest-reinplace show``: the terminal section of a report that was written before."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .. import stored, terminal
from ..visible import visible

if TYPE_CHECKING:
    import pytest


class Lines:
    """What the section is printed to, in the form of pytest's terminal; without colours."""

    def section(self, title: str, **markup: Any) -> None:
        """Print a heading as wide as the terminal."""
        width = shutil.get_terminal_size().columns
        # As pytest fills its headings: as many on both sides, one more where that fits.
        fill = "=" * max((width - len(title) - 2) // 2, 1)
        line = f"{fill} {title} {fill}"
        print(line + "=" if len(line) + 1 <= width else line)

    def line(self, text: str, **markup: Any) -> None:
        """Print one line, whatever the names in it hold."""
        print(visible(text))


def show(path: Path) -> int:
    """Print the section; returns the exit code.

    Raises:
        stored.StoredError: the report cannot be used.
    """
    found = stored.read(path)
    terminal.summarize(cast("pytest.TerminalReporter", Lines()), found.records)
    return 0
