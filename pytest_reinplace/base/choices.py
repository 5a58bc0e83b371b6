"""What can be chosen by name: a pass under test, a backend, a device, a side of a measurement."""

from __future__ import annotations

from typing import Literal

BACKENDS = ("inductor", "graph")
PASSES = ("inductor", "exact", "post_grad")
DEVICES = ("cpu", "cuda")
SIDES = ("inductor", "eager")

Asker = Literal["test", "marked test", "entry", "command"]
"""Who captures, and reads the hints; a marked test names the pass itself."""


def pass_name(text: str) -> str:
    """Return a name of a pass under test; raises ``ValueError`` naming the valid ones."""
    module, colon, attribute = text.partition(":")
    parts = [*module.split("."), *attribute.split(".")]
    if text in PASSES or (colon and all(part.isidentifier() for part in parts)):
        return text
    raise ValueError(f"expected one of {', '.join(PASSES)} or package.module:attribute, got {text!r}")


def backend_name(text: str) -> str:
    """Return a name of a backend; raises ``ValueError`` naming the valid ones."""
    return _one_of(BACKENDS, text)


def device_name(text: str) -> str:
    """Return a name of a device; raises ``ValueError`` naming the valid ones."""
    return _one_of(DEVICES, text)


def side_name(text: str) -> str:
    """Return a name of a side that is always measured; raises ``ValueError`` naming the valid ones."""
    return _one_of(SIDES, text)


def _one_of(valid: tuple[str, ...], text: str) -> str:
    if text in valid:
        return text
    raise ValueError(f"expected one of {', '.join(valid)}, got {text!r}")
