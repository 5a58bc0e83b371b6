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


def shrunk(choices: Sequence[int], still_fails: Callable[[list[int]], bool], budget: int = 800) -> list[int]:
    """Return fewer and smaller choices for which ``still_fails`` holds as it does for the given ones."""
    best, width = list(choices), max(1, len(choices) // 2)
    while width:
        start = 0
        while start < len(best) and budget > 0:
            options = [t for t in _simpler(best, start, width) if t != best]
            budget -= len(options)
            better = next((t for t in options if still_fails(t)), None)
            if better is None:
                start += width
            else:
                best = better
        width //= 2
    return best


def _simpler(choices: list[int], start: int, width: int) -> list[list[int]]:
    """Return the choices without a part, with zeros there, and with smaller numbers there."""
    before, part, after = choices[:start], choices[start : start + width], choices[start + width :]
    options = [before + after, before + [0] * len(part) + after]
    if width == 1:
        options += [[*before, n, *after] for n in (part[0] // 2, part[0] - 1) if n > 0]
    return options
