"""The memory of calls as one HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..base import _torch
from ..base.visible import brief
from ..base.wording import bytes_of
from ..lowered import told
from ..reports.template import environment, text_of
from .bars import Axis, bars, shown
from .drawn import Drawn, Side
from .row import KINDS, Row

_REPORT = "pytest_reinplace.reports.html"
_NODES = 6
_INSTALLED = re.compile(r".*[/\\]site-packages[/\\]")  # a bar's title has the whole path


def page(function: str, sides: Sequence[Side]) -> str:
    """Return the page.

    Args:
        function: what was called.
        sides: the call with each pass; of two the first is the one before.
    """
    from markupsafe import Markup

    style = text_of("page.css", _REPORT) + text_of("page.css", __package__)
    script = text_of("page.js", __package__)
    parts = [_part(f"p{i}", group, sides) for i, group in enumerate(_groups(sides))]
    kinds = {row.kind for side in sides for one in side.programs for row in one.rows}
    return (
        environment(__package__)
        .get_template("page.jinja")
        .render(
            style=Markup(style),
            script=Markup(script),
            style_hash=_hash(style),
            script_hash=_hash(script),
            version=_torch.version("pytest-reinplace") or "unknown",
            function=brief(function),
            sides=[
                {
                    "name": brief(side.pass_name),
                    "peak": bytes_of(side.memory.measured),
                    "equation": brief(told.equation(side.memory)),
                }
                for side in sides
            ],
            legend=[(kind, words) for kind, words in KINDS.items() if kind in kinds],
            parts=parts,
        )
    )


def _groups(sides: Sequence[Side]) -> Iterator[list[Drawn | None]]:
    """Yield the calls of programs that belong together, one for each side: the nth of a frame and the nth.

    How often a frame was compiled before, ``1`` of ``"[fw 0/1]"``, may be another number on each side.
    """
    found: dict[tuple[str, int], list[Drawn | None]] = {}
    for i, side in enumerate(sides):
        counts: dict[str, int] = {}
        for one in side.programs:
            frame = one.graph.partition("/")[0]
            number = counts[frame] = counts.get(frame, 0) + 1
            found.setdefault((frame, number), [None] * len(sides))[i] = one
    yield from found.values()


def _part(id: str, group: Sequence[Drawn | None], sides: Sequence[Side]) -> dict[str, Any]:
    """Return what the template shows of a program, with each pass."""
    programs = [one for one in group if one is not None]
    known = [one for one in programs if one.live]
    axis = Axis(max((len(one.live) for one in known), default=0), max((one.peak for one in known), default=0))
    pairs = zip(itertools.count(), group, sides, strict=False)
    return {
        "id": id,
        "graph": brief(" and ".join(dict.fromkeys(one.graph for one in programs))),
        "positions": axis.positions,
        "peak_at": known[-1].peak_at if known else 0,
        "sides": [_side(f"{id}s{i}", one, side, axis) for i, one, side in pairs],
    }


def _side(id: str, program: Drawn | None, side: Side, axis: Axis) -> dict[str, Any]:
    name = brief(side.pass_name)
    if program is None or not program.live:
        return {"id": id, "name": name, "problem": _problem(program)}
    rows = shown(program)
    return {
        "id": id,
        "name": name,
        "problem": "",
        "graph": brief(program.graph),
        "picture": bars(program, axis),
        "peak": bytes_of(program.peak),
        "aside": bytes_of(program.aside) if program.aside else "",
        "peak_at": program.peak_at,
        "left": len(program.rows) - len(rows),
        "rows": [_row(row, program) for row in sorted(rows, key=lambda row: -row.nbytes)],
        "gaps": [f"position {position}: {brief(text)}" for position, text in program.gaps],
    }


def _problem(program: Drawn | None) -> str:
    if program is None:
        return "this program did not run"
    return f"not known: {brief(program.problem)}" if program.problem else "no line of it ran"


def _row(row: Row, program: Drawn) -> dict[str, Any]:
    nodes = ", ".join(row.nodes[-_NODES:])  # the last of them is what it holds in the end
    return {
        "kind": row.kind,
        "name": brief(row.label),
        "bytes": bytes_of(row.nbytes),
        "lives": row.lives,
        "first": row.held.start,
        "end": row.held.stop,
        "at_peak": program.peak_at in row.held,
        "nodes": brief(f"… {nodes}" if len(row.nodes) > _NODES else nodes),
        "source": brief(_INSTALLED.sub("", row.source)),
        "why": brief(row.why),
    }


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
