"""What a compiled graph depends on beside the graph and a pass's arguments: part of Inductor's cache keys."""

from __future__ import annotations

import pathlib

from ..ops import declarations
from ._torch import digest_of_files
from .defects import switched_off

_PASSES = pathlib.Path(__file__).parents[1]


def fingerprint() -> str:
    """Return a digest of the source of all passes: a changed pass must not hit old cache entries."""
    files = sorted(str(p) for p in _PASSES.rglob("*.py"))
    return digest_of_files(tuple(files))


def state() -> tuple[str, ...]:
    """Return a digest of all passes, what was declared about operators, and what is switched off."""
    return (fingerprint(), *declarations.fingerprint(), *switched_off())
