"""The chart of live bytes: numbers for the template that draws it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..base.visible import brief
from ..base.wording import bytes_of

_WIDTH, _HEIGHT = 800, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 10, 790, 24, 190
_MOST_MARKS = 60


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
        return round(_LEFT + (_RIGHT - _LEFT) * min(position, self.nodes) / self.nodes, 1)

    def y(self, nbytes: float) -> float:
        """Return how high bytes are."""
        return round(_BOTTOM - (_BOTTOM - _TOP) * nbytes / self.most, 1)

    def path(self, curve: Sequence[int]) -> str:
        """Return a curve as steps: each point holds until the next."""
        heights = [self.y(size) for size in curve]
        path = f"M{_LEFT} {heights[0]:g}"
        for position, height in enumerate(heights, 1):
            following = heights[position] if position < len(heights) else None
            if following != height:
                path += f"H{self.x(position * self.step):g}" + (
                    f"V{following:g}" if following is not None else ""
                )
        return path


def chart(memory: Mapping[str, Any], lines: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what the template draws; ``None`` where nothing but inputs is held.

    Args:
        memory: of a picture.
        lines: the ids of the lines that marks link to, by node.
    """
    most = max(memory["peak_functional"], memory["peak_decided"])
    if not most:
        return None
    scale = Scale(memory["nodes"], memory["step"], most)
    decided = scale.path(memory["decided"])
    marks = _marks(memory, lines, scale)
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _RIGHT,
        "top": _TOP,
        "bottom": _BOTTOM,
        "nodes": scale.nodes - 1,
        "most": bytes_of(most),
        "peak_functional": bytes_of(memory["peak_functional"]),
        "peak_decided": bytes_of(memory["peak_decided"]),
        "functional": scale.path(memory["functional"]),
        "decided": decided,
        "area": f"{decided}V{_BOTTOM}H{_LEFT}Z",
        "marks": marks,
        "left_out": len(marks) < len(memory["copies"]),
    }


def _marks(memory: Mapping[str, Any], lines: Mapping[str, str], scale: Scale) -> list[dict[str, Any]]:
    """Return the largest copies, from left to right."""
    largest = sorted(memory["copies"], key=lambda copy: (-copy["nbytes"], copy["at"]))[:_MOST_MARKS]
    return [
        {
            "x": scale.x(copy["at"] + 0.5),
            "y": scale.y(memory["decided"][copy["at"] // scale.step]),
            "title": brief(f"{copy['label']}: {bytes_of(copy['nbytes'])} copied at {copy['node']}"),
            "line": lines.get(copy["node"]),
        }
        for copy in sorted(largest, key=lambda copy: copy["at"])
    ]
