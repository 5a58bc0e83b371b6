"""Making a list of choices shorter and smaller while something still fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence


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
