"""Where positions and amounts are in a chart."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

WIDTH, HEIGHT = 800, 220
LEFT, RIGHT, TOP, BOTTOM = 10, 790, 24, 190


@dataclasses.dataclass(frozen=True, slots=True)
class Scale:
    """Where positions and bytes are in the drawing.

    Args:
        nodes: that are from left to right.
        step: nodes that one point of a curve stands for.
        most: bytes that are from bottom to top.
    """

    nodes: int
    step: int
    most: float

    def x(self, position: float) -> float:
        """Return where a node begins."""
        return round(LEFT + (RIGHT - LEFT) * min(position, self.nodes) / self.nodes, 1)

    def y(self, nbytes: float) -> float:
        """Return how high bytes are."""
        return round(BOTTOM - (BOTTOM - TOP) * nbytes / self.most, 1)

    def path(self, curve: Sequence[int]) -> str:
        """Return a curve as steps: each point holds until the next."""
        heights = [self.y(size) for size in curve]
        path = f"M{LEFT} {heights[0]:g}"
        for position, height in enumerate(heights, 1):
            following = heights[position] if position < len(heights) else None
            if following != height:
                path += f"H{self.x(position * self.step):g}" + (
                    f"V{following:g}" if following is not None else ""
                )
        return path
