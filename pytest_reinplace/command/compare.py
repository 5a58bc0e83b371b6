"""``pytest-reinplace compare``: two reports beside each other, held against limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..compare import comparison_text
from ..compare.comparison import compare
from ..compare.limit import Limit
from ..record import stored


def run(old: Path, new: Path, limits: Sequence[Limit], as_markdown: bool) -> int:
    """Print the comparison; returns the exit code, 1 where a limit is exceeded.

    Raises:
        stored.StoredError: a report cannot be used.
    """
    found = compare(stored.read(old), stored.read(new), limits)
    if as_markdown:
        print(comparison_text.markdown(found), end="")
    else:
        for line in comparison_text.text(found):
            print(line)
    return 0 if found.passed else 1
