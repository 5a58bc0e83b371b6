"""The terminal section of ``--reinplace-report``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from ..base.fit import ASCII, ELLIPSIS, TIMES
from ..reports import text


class Terminal(Protocol):
    """What the section is printed to: pytest's terminal, or what takes its place outside pytest."""

    def section(self, title: str, sep: str = "=", **markup: bool) -> None:
        """Print a heading as wide as the terminal."""

    def write(self, content: str, *, flush: bool = False, **markup: bool) -> None:
        """Print a piece of a line."""


def summarize(terminal: Terminal, report: Mapping[str, Any], width: int, verbosity: int) -> None:
    """Print what is to be looked at, the clones by line and reason, and the sums; one line where all is fine.

    Args:
        terminal: it decides about colours.
        report: the document.
        width: columns of the terminal.
        verbosity: as ``-v`` counts.
    """
    found = text.section(report, width, verbosity)
    if found.title:
        terminal.section(found.title)
    letters = {} if _writes(ELLIPSIS + TIMES) else ASCII
    for line in found.lines:
        for part in line:
            terminal.write(part.text.translate(letters), **dict.fromkeys(part.styles, True))
        terminal.write("\n")


def _writes(letters: str) -> bool:
    """Return whether the terminal has letters; pytest has ended its capture when it prints summaries."""
    try:
        letters.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
