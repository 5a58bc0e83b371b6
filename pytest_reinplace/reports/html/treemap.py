"""A squarified treemap: rectangles whose areas are as given sizes, none of them much longer than wide.

Bruls, Huizing and van Wijk, Squarified Treemaps, 2000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle: its left and upper edges, its width and height."""

    x: float
    y: float
    width: float
    height: float


def squarified(sizes: Sequence[float], room: Box) -> list[Box]:
    """Return a box for each size, in their order, which together fill the room.

    Args:
        sizes: each more than 0, the largest first.
        room: what is divided.
    """
    total = sum(sizes)
    areas = [size * room.width * room.height / total for size in sizes]
    found: list[Box] = []
    while areas:
        side = min(room.width, room.height)
        count = 1
        while count < len(areas) and _worst(areas[: count + 1], side) <= _worst(areas[:count], side):
            count += 1
        row, areas = areas[:count], areas[count:]
        found += _laid(row, room)
        room = _rest(sum(row), room)
    return found


def _worst(row: Sequence[float], side: float) -> float:
    """Return the largest quotient of the two edges of a box, in a row that lies along a side."""
    thickness = sum(row) / side
    return max(max(thickness**2 / area, area / thickness**2) for area in (max(row), min(row)))


def _laid(row: Sequence[float], room: Box) -> Iterator[Box]:
    """Yield the boxes of a row along the shorter side of a room."""
    is_wide = room.width >= room.height
    thickness = sum(row) / (room.height if is_wide else room.width)
    at = room.y if is_wide else room.x
    for area in row:
        length = area / thickness
        yield Box(room.x, at, thickness, length) if is_wide else Box(at, room.y, length, thickness)
        at += length


def _rest(area: float, room: Box) -> Box:
    """Return what is left of a room."""
    if room.width >= room.height:
        taken = area / room.height
        return Box(room.x + taken, room.y, max(room.width - taken, 0.0), room.height)
    taken = area / room.width
    return Box(room.x, room.y + taken, room.width, max(room.height - taken, 0.0))
