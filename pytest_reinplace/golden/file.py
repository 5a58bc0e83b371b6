"""The file beside a test that says what a graph is, and what becomes of it."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..expected.found import GRAPH
from .text import Writer

if TYPE_CHECKING:
    from torch.fx import GraphModule

_NAME = re.compile(r"[\w-][\w.-]*")


def path_of(test_file: Path, name: str) -> Path:
    """Return the file of a name: ``test_fold.graphs/NAME.graph`` beside ``test_fold.py``.

    Raises:
        ValueError: it cannot be a file's name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"expected letters, digits, '-', '_' and '.' as the name of a graph, got {name!r}")
    return test_file.parent / f"{test_file.stem}.graphs" / f"{name}{GRAPH}"


def text_of(before: GraphModule, after: GraphModule | None) -> str:
    """Return the text of a graph, and of what becomes of it, if anything does."""
    writer = Writer()
    parts = [("graph" if after is None else "before", writer.lines(before))]
    if after is not None:
        parts.append(("after", writer.lines(after)))
    return "\n".join("".join([f"{title}\n", *(f"    {line}\n" for line in lines)]) for title, lines in parts)


def difference(expected: str, came: str) -> str:
    """Return the lines of a unified diff, with enough around to see where they are."""
    old, new = expected.splitlines(), came.splitlines()
    return "\n".join(difflib.unified_diff(old, new, "expected", "came", n=5, lineterm=""))
