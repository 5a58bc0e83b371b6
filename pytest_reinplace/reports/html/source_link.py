"""Links from a page to the files of the user's program, and their lines."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from ...base.wording import location
from .excerpt import Excerpts, SourceLine


class SourceLinks:
    """Links that are relative to the page, so that a folder that holds both can be moved.

    Args:
        base: what relative files are relative to.
        folder: where the page will be; ``None`` for a page without links.
    """

    def __init__(self, base: Path, folder: Path | None) -> None:
        self._base = base
        self._folder = folder
        self._known: dict[str, Path | None] = {}
        self._excerpts = Excerpts()

    def href(self, source: str) -> str | None:
        """Return the link for ``"file:line"``, ``None`` where there is no such file."""
        path = self.path(source)
        if path is None or self._folder is None:
            return None
        # A colon is quoted too: what is before the first one would be taken for a scheme.
        return quote(os.path.relpath(path, self._folder).replace(os.sep, "/"))

    def path(self, source: str) -> Path | None:
        """Return the file of ``"file:line"``, ``None`` where there is none."""
        found = location(source)
        if found is None:
            return None
        file = found[0]
        if file not in self._known:
            self._known[file] = _existing(self._base / file)
        return self._known[file]

    def excerpt(self, source: str) -> list[SourceLine]:
        """Return the lines around ``"file:line"``; empty where there is no such line."""
        path, found = self.path(source), location(source)
        return self._excerpts.around(path, found[1]) if path is not None and found is not None else []


def _existing(path: Path) -> Path | None:
    try:
        return path if path.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None
