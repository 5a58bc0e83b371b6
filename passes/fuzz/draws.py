"""Where random graphs take their choices from: a seed, a record of earlier choices, or Hypothesis."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """A source of choices that remembers what it gave, so that a graph can be built again.

    Args:
        below: returns a number of ``range(n)``; 0 is the simplest choice.
        wild: whether rare things are among the options: views that hide what they are, tensors without
            elements, subgraphs three calls deep.
    """

    def __init__(self, below: Callable[[int], int], *, wild: bool = False) -> None:
        self._below = below
        self.wild = wild
        self.taken: list[int] = []

    @classmethod
    def seeded(cls, seed: int, *, wild: bool = False) -> Draws:
        """Choose by a plain generator."""
        return cls(random.Random(seed).randrange, wild=wild)

    @classmethod
    def replayed(cls, choices: Sequence[int], *, wild: bool = False) -> Draws:
        """Choose as recorded; what is too large is cut, and after the end everything is 0."""
        rest = iter(choices)
        return cls(lambda n: min(next(rest, 0), n - 1), wild=wild)

    def below(self, count: int) -> int:
        """Choose a number of ``range(count)``."""
        if count <= 1:
            return 0
        value = self._below(count)
        self.taken.append(value)
        return value

    def of(self, options: Sequence[T]) -> T:
        """Choose one of the options, the first being the simplest."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """Say yes with the given probability; no is simpler."""
        return self.below(100) >= 100 - percent

    def between(self, low: int, high: int) -> int:
        """Choose a number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)
