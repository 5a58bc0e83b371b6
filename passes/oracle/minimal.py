"""A failing program made small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self, TypeVar


class Program(Protocol):
    """What can be made smaller."""

    def smaller(self) -> Iterator[Self]:
        """Yield programs that have a little less."""


P = TypeVar("P", bound=Any)


def minimal(program: P, is_like: Callable[[P], bool]) -> P:
    """Return a program of as little as it takes to be like that one."""
    tried: Iterator[P] = iter(program.smaller())
    for other in tried:
        if _holds(is_like, other):
            return minimal(other, is_like)
    return program


def _holds(is_like: Callable[[P], bool], program: P) -> bool:
    try:
        return is_like(program)
    except Exception:  # noqa: BLE001  (eager mode refuses it: what it uses is gone)
        return False
