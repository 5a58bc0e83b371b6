"""The JSON file of ``--reinplace-json``."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from . import _torch
from .options import Settings
from .record import Record, total

SCHEMA = 1


def prepare(path: Path) -> None:
    """Make sure before the first test that a file can be written at the end.

    Raises:
        pytest.UsageError: it cannot; says why.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError("it is a directory")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise pytest.UsageError(f"--reinplace-json: cannot write {path}: {error}") from None


def write(path: Path, records: list[Record], settings: Settings) -> None:
    """Write the file as a whole: a reader sees the old one or the new one, never half of it."""
    text = json.dumps(document(records, settings), indent=2, sort_keys=True) + "\n"
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def document(records: list[Record], settings: Settings) -> dict[str, Any]:
    """Return the content: the same for a serial run and any number of workers.

    ``tests`` maps each test id to its outcome, its numbers and its graphs; ``pass`` and ``backend`` are those
    given by option, ``null`` where none was, and each graph names its own.
    """
    return {
        "schema": SCHEMA,
        "versions": {name: _torch.version(name) for name in ("pytest-reinplace", "torch", "triton")},
        "pass": settings.pass_name,
        "backend": settings.backend,
        "tests": {
            record.nodeid: {"outcome": record.outcome, **record.counts(), "graphs": list(record.graphs)}
            for record in records
        },
        "total": {"tests": len(records), **total(records)},
    }
