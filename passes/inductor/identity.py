"""What a compiled graph depends on beside the graph and a pass's arguments: part of Inductor's cache keys."""

from __future__ import annotations

import functools
import hashlib
import pathlib

from ..ops import declarations
from .defects import switched_off

_PASSES = pathlib.Path(__file__).parents[1]


@functools.cache
def fingerprint() -> str:
    """Return a digest of the source of all passes: a changed pass must not hit old cache entries."""
    digest = hashlib.sha256()
    for path in sorted(_PASSES.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(_PASSES).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def state() -> tuple[str, ...]:
    """Return a digest of all passes, what was declared about operators, and what is switched off."""
    return (fingerprint(), *declarations.fingerprint(), *switched_off())
