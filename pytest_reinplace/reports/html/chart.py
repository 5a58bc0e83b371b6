"""The chart of live bytes: numbers for the template that draws it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...base.visible import brief
from ...base.wording import bytes_of
from ...compare.figure import shown
from ..scale import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale

_MOST_MARKS = 60
_MOST_VALUES = 20
_ROWS, _COLUMNS = 5, 6
# Above, for the larger letters of a narrow screen.
_MARGIN = 12
# Between the highest tick of bytes and the top, where the peak is written.
_APART = 24


def chart(memory: Mapping[str, Any], lines: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what the template draws; ``None`` where nothing but inputs is held.

    Args:
        memory: of a picture.
        lines: the ids of the lines that marks and values link to, by node.
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
        "margin": _MARGIN,
        "left": LEFT,
        "right": RIGHT,
        "top": TOP,
        "bottom": BOTTOM,
        "nodes": scale.nodes - 1,
        "step": scale.step,
        "most": bytes_of(most),
        "peak_functional": bytes_of(memory["peak_functional"]),
        "peak_decided": bytes_of(memory["peak_decided"]),
        "functional": scale.path(memory["functional"]),
        "decided": decided,
        "area": f"{decided}V{BOTTOM}H{LEFT}Z",
        "marks": marks,
        "left_out": len(marks) < len(memory["copies"]),
        "sizes": list(_sizes(most, scale)),
        "positions": list(_positions(scale)),
        "values": {kind: " ".join(map(str, memory[kind])) for kind in ("functional", "decided")},
        "peak": _peak(memory, lines, scale),
    }


def _sizes(most: int, scale: Scale) -> Iterator[dict[str, Any]]:
    """Yield the ticks of bytes: multiples of a power of two, which have short names."""
    step = 1 << max(0, (-(-most // _ROWS) - 1).bit_length())
    for size in range(step, most + 1, step):
        if scale.y(size) >= TOP + _APART:
            yield {"y": scale.y(size), "text": shown("clone_bytes", size)}


def _positions(scale: Scale) -> Iterator[dict[str, Any]]:
    """Yield the ticks of nodes: multiples of 1, 2 or 5 times a power of ten."""
    steps = (digit * 10**power for power in range(18) for digit in (1, 2, 5))
    step = next(step for step in steps if step * _COLUMNS >= scale.nodes)
    for position in range(0, scale.nodes, step):
        x = scale.x(position + 0.5)
        anchor = "start" if not position else "end" if x > RIGHT - 20 else "middle"
        yield {"x": x, "text": position, "anchor": anchor}


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


def _peak(memory: Mapping[str, Any], lines: Mapping[str, str], scale: Scale) -> dict[str, Any] | None:
    """Return what is held at the peak, the largest first; ``None`` for a report of before that was noted."""
    peak = memory.get("peak")
    if not peak or not peak["values"]:
        return None
    shown_values = peak["values"][:_MOST_VALUES]
    left = memory["peak_decided"] - sum(value["nbytes"] for value in shown_values)
    return {
        "at": peak["at"],
        "x": scale.x(peak["at"] + 0.5),
        "point": peak["at"] // scale.step,
        "values": [
            {
                "name": brief(f"{value['node']}, {value['element']}" if value["element"] else value["node"]),
                "bytes": bytes_of(value["nbytes"]),
                "last": value["last"],
                "line": lines.get(value["node"]),
            }
            for value in shown_values
        ],
        "more": peak["count"] - len(shown_values),
        "more_bytes": bytes_of(left),
    }
