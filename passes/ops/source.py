"""Where a node comes from in the user's program."""

from __future__ import annotations

import os
import re

from torch.fx import Node

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def where(node: Node) -> str | None:
    """Return the user's innermost line of a node as ``"file:line"``, ``None`` when it is not known.

    The file is given relative to the working directory when it lies below it.
    """
    trace = node.meta.get("stack_trace")
    return where_in(trace) if isinstance(trace, str) else None


def where_in(trace: str) -> str | None:
    """Return the innermost line of a stack as ``where`` does, ``None`` where it has none."""
    frames = _FRAME.findall(trace)
    if not frames:
        return None
    path, line = frames[-1]
    return place(path, line)


def place(path: str, line: object) -> str:
    """Return a line of a file as ``"file:line"``, relative to the working directory when it lies below it."""
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return f"{path if relative.startswith('..') else relative}:{line}"
