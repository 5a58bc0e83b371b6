"""``pytest-reinplace show``: a report that was written before, as the terminal section or as Markdown."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from ..base.visible import brief
from ..record import stored
from ..record.stored import Stored
from ..reports.document import document
from ..reports.markdown import markdown
from ..session import terminal

_VERSIONS = 10
# The styles that the section uses, by the names of pytest's terminal.
_CODES = {"bold": 1, "light": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


class Screen:
    """What the section is printed to, in the form of pytest's terminal."""

    def __init__(self) -> None:
        # As pytest does: what is narrower tells a width that it does not have.
        columns = shutil.get_terminal_size().columns
        self.width: int = columns if columns >= 40 else 80
        self._has_colour = _has_colour()

    def section(self, title: str, sep: str = "=", **markup: bool) -> None:
        """Print a heading as wide as the terminal."""
        # As pytest fills its headings: as many on both sides, one more where that fits.
        fill = sep * max((self.width - len(title) - 2) // 2, 1)
        line = f"{fill} {title} {fill}"
        print(line + sep if len(line) + 1 <= self.width else line)

    def write(self, content: str, *, flush: bool = False, **markup: bool) -> None:
        """Print a piece of a line, in colour where that is wanted."""
        codes = [f"\x1b[{_CODES[name]}m" for name in markup] if self._has_colour else []
        print(*codes, content, "\x1b[0m" if codes else "", sep="", end="", flush=flush)


def show(path: Path, as_markdown: bool = False, verbosity: int = 0) -> int:
    """Print the section, or the report as Markdown; returns the exit code.

    Raises:
        stored.StoredError: the report cannot be used.
    """
    report, screen = _document(stored.read(path)), Screen()
    if as_markdown:
        print(markdown(report), end="")
    else:
        terminal.summarize(screen, report, screen.width, verbosity)
    return 0


def _has_colour() -> bool:
    """Return whether to print in colour; ``NO_COLOR`` and ``FORCE_COLOR`` decide, as they do in pytest."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (
        sys.stdout.isatty() and os.environ.get("TERM") not in (None, "dumb")
    )


def _document(found: Stored) -> dict[str, Any]:
    """Return a document of what was checked: sums are made anew, and of the rest the versions are kept."""
    versions = found.document.get("versions")
    pairs = sorted(versions.items())[:_VERSIONS] if isinstance(versions, dict) else []
    kept = {brief(name): brief(value) for name, value in pairs if isinstance(value, str)}
    return {**document(found.records, None, None), "versions": kept}
