"""Links from a page to the files of the user's program."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from ...base.wording import location


class SourceLinks:
    """Links that are relative to the page, so that a folder that holds both can be moved.

    Args:
        base: what relative files are relative to.
        folder: where the page will be; ``None`` for a page without links.
    """

    def __init__(self, base: Path, folder: Path | None) -> None:
        self._base = base
        self._folder = folder
        self._known: dict[str, str | None] = {}

    def href(self, source: str) -> str | None:
        """Return the link for ``"file:line"``, ``None`` where there is no such file."""
        found = location(source)
        if found is None or self._folder is None:
            return None
        file = found[0]
        if file not in self._known:
            self._known[file] = self._relative(self._base / file, self._folder)
        return self._known[file]

    @staticmethod
    def _relative(path: Path, folder: Path) -> str | None:
        try:
            if not path.is_file():
                return None
        except (OSError, ValueError):  # a name that no file can have
            return None
        # A colon is quoted too: what is before the first one would be taken for a scheme.
        return quote(os.path.relpath(path, folder).replace(os.sep, "/"))
