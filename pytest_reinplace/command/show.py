"""``pytest-reinplace show``: a report that was written before, as the terminal section or as Markdown."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..base.visible import brief, visible
from ..record import stored
from ..record.stored import Stored
from ..reports.document import document
from ..reports.markdown import markdown
from ..session import terminal

if TYPE_CHECKING:
    import pytest

_VERSIONS = 10


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


def show(path: Path, as_markdown: bool = False) -> int:
    """Print the section, or the report as Markdown; returns the exit code.

    Raises:
        stored.StoredError: the report cannot be used.
    """
    found = stored.read(path)
    if as_markdown:
        print(markdown(_document(found)), end="")
        return 0
    terminal.summarize(cast("pytest.TerminalReporter", Lines()), found.records)
    return 0


def _document(found: Stored) -> dict[str, Any]:
    """Return a document of what was checked: sums are made anew, and of the rest the versions are kept."""
    versions = found.document.get("versions")
    pairs = sorted(versions.items())[:_VERSIONS] if isinstance(versions, dict) else []
    kept = {brief(name): brief(value) for name, value in pairs if isinstance(value, str)}
    return {**document(found.records, None, None), "versions": kept}
