"""The numbers of a picture: where a program's bars and its level lie, for the template that draws them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from ..base.visible import brief
from ..base.wording import bytes_of
from .drawn import Drawn
from .row import Row

WIDTH = 1000
LEFT, RIGHT = 200, 990
_TOP, _LEVEL = 18, 90
# Under the level the ticks of the positions stand, then the bars.
_TICKS = 20
_ROW, _BAR = 15, 11
_THINNEST = 1.5
_MOST_ROWS = 300
_MOST_LINES = 2000
_COLUMNS = 8
_LONGEST_NAME = 28
_LONGEST_LINE = 120


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """What two pictures have in common.

    Args:
        positions: the number of positions from left to right.
        most: the bytes at the top of the level.
    """

    positions: int
    most: int

    def x(self, position: float) -> float:
        """Return where a position begins."""
        return round(LEFT + (RIGHT - LEFT) * position / max(self.positions, 1), 2)

    def y(self, nbytes: int) -> float:
        """Return where the level of some bytes is."""
        return round(_TOP + _LEVEL * (1 - nbytes / max(self.most, 1)), 2)

    def ticks(self) -> Iterator[dict[str, Any]]:
        """Yield the ticks of positions: multiples of 1, 2 or 5 times a power of ten."""
        steps = (digit * 10**power for power in range(18) for digit in (1, 2, 5))
        step = next(step for step in steps if step * _COLUMNS >= self.positions)
        for position in range(0, self.positions, step):
            yield {"x": self.x(position + 0.5), "text": position}


def bars(program: Drawn, axis: Axis) -> dict[str, Any]:
    """Return what the template draws of a program."""
    rows = shown(program)
    first = _TOP + _LEVEL + _TICKS
    return {
        "width": WIDTH,
        "height": first + _ROW * len(rows) + 4,
        "left": LEFT,
        "right": RIGHT,
        "top": _TOP,
        "first": first,
        "bottom": _TOP + _LEVEL,
        "end": first + _ROW * len(rows),
        "positions": len(program.live),
        "span": axis.positions,
        "level": _level(program, axis),
        "most": bytes_of(axis.most),
        "ticks": list(axis.ticks()),
        "bars": [_bar(row, first + _ROW * i, axis) for i, row in enumerate(rows)],
        "live": " ".join(map(str, program.live)),
        "lines": "\n".join(_cut(brief(line), _LONGEST_LINE) for line in program.lines)
        if len(program.lines) <= _MOST_LINES
        else "",
        "peak": axis.x(program.peak_at + 0.5),
    }


def shown(program: Drawn) -> list[Row]:
    """Return the rows that there is room for: all, or the largest, in program order."""
    order = sorted(range(len(program.rows)), key=lambda i: -program.rows[i].nbytes)
    return [program.rows[i] for i in sorted(order[:_MOST_ROWS])]


def _level(program: Drawn, axis: Axis) -> str:
    """Return the path of the live bytes: a step at each position where they change, closed below."""
    path, before = [f"M{LEFT} {axis.y(0)}"], 0
    for i, nbytes in enumerate(program.live):
        if nbytes != before:
            path.append(f"H{axis.x(i)}V{axis.y(nbytes)}")
            before = nbytes
    return "".join([*path, f"H{axis.x(len(program.live))}V{axis.y(0)}Z"])


def _bar(row: Row, y: float, axis: Axis) -> dict[str, Any]:
    x = axis.x(row.span.start)
    return {
        "kind": row.kind,
        "x": x,
        "y": y,
        "width": max(round(axis.x(row.span.stop) - x, 2), _THINNEST),
        "height": _BAR,
        "text": y + _BAR - 2,
        "name": _cut(brief(row.label), _LONGEST_NAME),
        "title": brief(row.title),
    }


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
