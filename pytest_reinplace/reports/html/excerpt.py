"""Some lines of the user's program around one that copies."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_AROUND = 3
_MOST_BYTES = 2_000_000


class SourceLine(NamedTuple):
    """A line of a file: its number, from 1, its text, and whether it is the one that was asked for."""

    number: int
    text: str
    is_asked: bool


class Excerpts:
    """Excerpts of files, each of which is read once."""

    def __init__(self) -> None:
        self._known: dict[Path, list[str]] = {}

    def around(self, path: Path, line: int) -> list[SourceLine]:
        """Return the lines around one of a file, without their common indentation.

        Empty where the file cannot be read, is no text, or has no such line.
        """
        if path not in self._known:
            self._known[path] = _lines(path)
        lines = self._known[path]
        if not 1 <= line <= len(lines):
            return []
        first, last = max(line - _AROUND, 1), min(line + _AROUND, len(lines))
        while first < line and not lines[first - 1].strip():
            first += 1
        while last > line and not lines[last - 1].strip():
            last -= 1
        texts = [text.expandtabs(4).rstrip() for text in lines[first - 1 : last]]
        indents = [len(text) - len(text.lstrip()) for text in texts if text]
        cut = min(indents, default=0)
        return [SourceLine(i, text[cut:], i == line) for i, text in enumerate(texts, first)]


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        return [] if len(content) > _MOST_BYTES else content.decode("utf-8").splitlines()
    except (OSError, ValueError):
        return []
