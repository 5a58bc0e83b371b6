"""Trends as an SVG: a small chart for each figure of each test, four in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.visible import brief
from ..compare import figure
from ..compare.trend import Trend
from . import template
from .scale import Scale

_COLUMNS = 4
_WIDTH, _HEIGHT, _TOP = 260, 100, 30


def chart(trends: Sequence[Trend]) -> str:
    """Return the drawing. Each chart begins at 0; a report without the figure leaves a gap in its line."""
    cells = [_cell(i, trend) for i, trend in enumerate(trends)]
    rows = -(-len(cells) // _COLUMNS)
    values = {"width": _COLUMNS * _WIDTH, "height": _TOP + max(rows, 1) * _HEIGHT, "cells": cells}
    return template.environment(__package__).get_template("history.jinja").render(**values) + "\n"


def _cell(index: int, trend: Trend) -> dict[str, Any]:
    scale = Scale(len(trend.values), 1, max(trend.known) or 1)
    row, column = divmod(index, _COLUMNS)
    points = [
        None if value is None else (scale.x(at + 0.5), scale.y(value))
        for at, value in enumerate(trend.values)
    ]
    return {
        "x": column * _WIDTH,
        "y": _TOP + row * _HEIGHT,
        "name": brief(trend.nodeid),
        "short": _short(trend.nodeid),
        "metric": figure.wording_of(trend.metric),
        "last": "-" if trend.last is None else figure.shown(trend.metric, trend.last),
        "lines": [" ".join(f"{x:g},{y:g}" for x, y in line) for line in _unbroken(points)],
        "dots": [point for point in points if point is not None],
    }


def _unbroken(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """Return the parts of a line between its gaps."""
    parts: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            parts.append([])
        else:
            parts[-1].append(point)
    return [part for part in parts if len(part) > 1]


def _short(nodeid: str) -> str:
    """Return the end of a test's id, which is what tells it from others."""
    name = brief(nodeid)
    return name if len(name) <= 38 else f"…{name[-37:]}"
