"""The chart of live bytes: numbers for the template that draws it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.visible import brief
from ...base.wording import bytes_of
from ..scale import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale

_MOST_MARKS = 60


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
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "top": TOP,
        "bottom": BOTTOM,
        "nodes": scale.nodes - 1,
        "most": bytes_of(most),
        "peak_functional": bytes_of(memory["peak_functional"]),
        "peak_decided": bytes_of(memory["peak_decided"]),
        "functional": scale.path(memory["functional"]),
        "decided": decided,
        "area": f"{decided}V{BOTTOM}H{LEFT}Z",
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
