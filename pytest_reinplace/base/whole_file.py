"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file: a reader sees what was there before or the new content, never half of it.

    Args:
        path: the file.
        content: what it holds; a text is written in UTF-8.
        mode: who may read and write it.

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
