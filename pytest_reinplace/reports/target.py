"""A file that a report is written to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from ..base import whole_file
from .template import missing


def prepare(paths: Mapping[str, Path]) -> None:
    """Make sure before the first test that files can be written at the end.

    Args:
        paths: the files by the options that name them.

    Raises:
        pytest.UsageError: one cannot, or two are the same, or a package is missing; says which and why.
    """
    if "--reinplace-html" in paths and (absent := missing()):
        raise pytest.UsageError(
            f"--reinplace-html: needs {' and '.join(absent)}: pip install {' '.join(absent)}"
        )
    seen: dict[str, str] = {}
    for option, path in paths.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError("it is a directory")
            if path.exists() and not os.access(path, os.W_OK):
                raise PermissionError("it is write-protected")
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except (OSError, ValueError) as error:
            raise pytest.UsageError(f"{option}: cannot write {path}: {error}") from None
        other = seen.setdefault(os.path.realpath(path), option)
        if other != option:
            raise pytest.UsageError(f"{option}: {path} is written by {other}; give each report its own file")


def write(path: Path, text: str, *, append: bool = False) -> None:
    """Write a file as a whole: a reader sees the old one or the new one, never half of it.

    Args:
        path: the file; a device or a pipe is written to as it is.
        text: its content.
        append: whether what the file holds already stays before it.
    """
    path = Path(os.path.realpath(path))  # a link stays one
    if append or (path.exists() and not path.is_file()):  # a device has nothing to replace
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)
        return
    whole_file.write(path, text)
