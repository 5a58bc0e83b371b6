"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a text: a reader sees what was there before or the new text, never half of it.

    Args:
        path: the file.
        text: its content.
        mode: who may read and write it.

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
