"""Torch's trace log in what a test printed: hundreds of records in a compile, and none has a text."""

from __future__ import annotations

import re

_TRACE = re.compile(r"DEBUG\s+torch\.__trace:\S+\s*$")


def removed(sections: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return captured output without these records."""
    kept = []
    for name, text in sections:
        lines = text.splitlines(keepends=True)
        left = "".join(line for line in lines if not _TRACE.match(line))
        if left or not text:
            kept.append((name, left))
    return kept
