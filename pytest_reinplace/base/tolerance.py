"""How far two values may be apart and still count as the same."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Tolerance:
    """How far compiled values may be from eager ones: ``|a - b| <= atol + rtol * |b|``.

    Args:
        rtol: relative difference.
        atol: absolute difference.
        integers: how far integers may be apart instead, e.g. 1 where a value between two steps of a grid may
            be rounded either way; ``None``: as far as all others.
    """

    rtol: float = 1e-5
    atol: float = 1e-6
    integers: float | None = None

    def __str__(self) -> str:
        both = f"rtol={self.rtol:g}, atol={self.atol:g}"
        return both if self.integers is None else f"{both}, integers={self.integers:g}"
