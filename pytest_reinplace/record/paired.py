"""Whether one side is slower than another, from rounds in which both were timed."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

CONFIDENCE = 0.999
"""How sure the bounds are, each by itself."""
FEWEST = 10
"""Rounds below which no bound is that sure."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long one side takes, over all rounds.

    Args:
        median: the median of the rounds' ratios.
        low: no higher than the true median, with ``CONFIDENCE``.
        high: no lower than the true median, with ``CONFIDENCE``.
    """

    median: float
    low: float
    high: float


def ratio(times: Sequence[float], others: Sequence[float]) -> Ratio | None:
    """Return how ``times`` relate to ``others``, round by round; ``None`` for too few rounds.

    The bounds are order statistics of the ratios (the sign test's interval for a median: David and Nagaraja,
    Order Statistics, 7.1), so that they assume nothing about how times are distributed; a round that
    something else disturbed counts as one round, however long it took.

    Raises:
        ValueError: the two were not timed in the same rounds.
    """
    if len(times) != len(others):
        raise ValueError(f"expected the same rounds for both sides, got {len(times)} and {len(others)}")
    ratios = sorted(a / b for a, b in zip(times, others, strict=True) if b > 0)
    if len(ratios) < FEWEST:
        return None
    depth = _depth(len(ratios))
    return Ratio(statistics.median(ratios), ratios[depth], ratios[-1 - depth])


def _depth(count: int) -> int:
    """Return how many of ``count`` ordered values may lie outside a bound of their median."""
    tail, depth = 0.0, -1
    for below in range(count):
        tail += math.comb(count, below) / 2**count
        if tail > 1 - CONFIDENCE:
            break
        depth = below
    return max(depth, 0)
