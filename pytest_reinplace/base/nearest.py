"""A word that nobody knows, and the valid one that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def nearest(word: str, valid: Iterable[str]) -> str:
    """Return the end of a message that names the nearest valid word, or all of them when they are few."""
    valid = list(valid)
    if near := difflib.get_close_matches(word, valid, 1):
        return f": did you mean {near[0]!r}?"
    return f"; valid are {', '.join(map(repr, valid))}" if len(valid) <= 40 else ""


def nearest_attribute(name: str, owner: Any) -> str:
    """Return the end of a message that names the nearest attribute of a module or a class."""
    public = [known for known in getattr(owner, "__dict__", ()) if not known.startswith("_")]
    return nearest(name, public) if public else ""
