"""The part of the page about the lines that copy: their bytes, what stands there, and why it copies."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...base.fit import TIMES
from ...base.visible import brief
from ...base.wording import bytes_of, location, plural
from ...compare.figure import shown
from ..clone import Clone
from ..groups import Group, groups_of
from .highlight import highlighted
from .source_link import SourceLinks
from .treemap import Box, squarified

_MOST_CELLS = 40
_MOST_REASONS = 10
_LABELS = 3
_NAME = 60
# Of the whole: smaller cells are put together.
_LEAST = 0.002
# The shape that boxes are made for; narrow screens stretch it.
_WIDTH, _HEIGHT = 3.0, 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class CopiedLine:
    """A line of the user's program, and the clones that it makes.

    Args:
        id: of its element, unique on the page.
        source: ``"file:line"``, empty for all clones whose line is not known.
        groups: its clones by reason, those of most bytes first.
    """

    id: str
    source: str
    groups: tuple[Group, ...]

    @property
    def nbytes(self) -> int:
        """The bytes that its clones hold together."""
        return sum(group.nbytes for group in self.groups)

    @property
    def count(self) -> int:
        """How many clones it makes."""
        return sum(len(group.clones) for group in self.groups)

    @property
    def file(self) -> str:
        """Its file."""
        found = location(self.source)
        return found[0] if found else self.source

    @property
    def name(self) -> str:
        """What it is called on the page."""
        return brief(self.source) if self.source else "line not known"

    @property
    def number(self) -> str:
        """What it is called where its file is known: ``"line 26"``."""
        found = location(self.source)
        return f"line {found[1]}" if found else _end(self.name)

    def shown(self, links: SourceLinks) -> dict[str, Any]:
        """Return the values of the template."""
        lines = links.excerpt(self.source)
        texts = highlighted([line.text for line in lines])
        return {
            "id": self.id,
            "name": self.name,
            "href": links.href(self.source),
            "bytes": bytes_of(self.nbytes),
            "clones": plural(self.count, "clone"),
            "lines": [
                {"number": line.number, "html": html, "is_asked": line.is_asked}
                for line, html in zip(lines, texts, strict=True)
            ],
            "reasons": [_reason(group) for group in self.groups[:_MOST_REASONS]],
            "more": max(0, len(self.groups) - _MOST_REASONS),
        }


def _reason(group: Group) -> dict[str, Any]:
    labels, more = group.labels[:_LABELS], len(group.labels) - _LABELS
    return {
        "labels": brief(", ".join(labels)) + (f" and {more} more" if more > 0 else ""),
        "size": f"{bytes_of(group.nbytes)} in {plural(len(group.clones), 'clone')}",
        "sentence": brief(group.sentence),
        "blockers": brief(group.blockers),
        "hint": brief(group.hint),
        "tests": plural(len(group.tests), "test"),
    }


def copied_lines(clones: Iterable[Clone]) -> list[CopiedLine]:
    """Return the lines that copy, those of most bytes first.

    Args:
        clones: the largest first.
    """
    found: dict[str, list[Group]] = {}
    for group in groups_of(clones):
        found.setdefault(group.clones[0].source, []).append(group)
    ordered = sorted(found.items(), key=lambda pair: -sum(group.nbytes for group in pair[1]))
    return [CopiedLine(f"s{i}", source, tuple(groups)) for i, (source, groups) in enumerate(ordered)]


@dataclasses.dataclass(frozen=True, slots=True)
class Treemap:
    """The bytes of lines as areas, in boxes of their files.

    Args:
        files: what the template shows.
        style: the rules that say where each box is.
    """

    files: list[dict[str, Any]]
    style: str


def treemap(lines: Sequence[CopiedLine], known: Iterable[str]) -> Treemap | None:
    """Draw the lines; ``None`` where they copy nothing.

    Args:
        lines: those of most bytes first.
        known: the ids of lines that have an element on the page, which others cannot be linked to.
    """
    total, linked = sum(line.nbytes for line in lines), set(known)
    cells = [line for line in lines[:_MOST_CELLS] if total and line.nbytes >= _LEAST * total]
    files: dict[str, list[dict[str, Any]]] = {}
    for line in cells:
        size, times = shown("clone_bytes", line.nbytes), f"{line.count}{TIMES}"
        title = f"{_end(line.name)}: {size} in {plural(line.count, 'clone')}"
        cell = {"id": line.id if line.id in linked else "", "name": line.number, "size": f"{size}, {times}"}
        file = line.file if location(line.source) else ""
        files.setdefault(file, []).append(cell | {"title": title, "nbytes": line.nbytes})
    rest = lines[len(cells) :]
    if cells and sum(line.nbytes for line in rest):
        left, count = sum(line.nbytes for line in rest), plural(len(rest), "more line")
        other = {"id": "", "name": count, "size": shown("clone_bytes", left), "title": count}
        files.setdefault("", []).append({**other, "nbytes": left})
    return _drawn(files) if files else None


def _drawn(files: Mapping[str, list[dict[str, Any]]]) -> Treemap:
    ordered = sorted(files.items(), key=lambda pair: -_sum(pair[1]))
    rules: list[str] = []
    found = []
    whole = Box(0, 0, _WIDTH, _HEIGHT)
    boxes = squarified([_sum(cells) for _, cells in ordered], whole)
    for i, ((name, cells), box) in enumerate(zip(ordered, boxes, strict=True)):
        rules.append(_rule(f"f{i}", box, whole))
        inner = squarified([cell["nbytes"] for cell in cells], Box(0, 0, box.width, box.height))
        for j, place in enumerate(inner):
            rules.append(_rule(f"f{i}c{j}", place, Box(0, 0, box.width, box.height)))
        shown_cells = [cell | {"box": f"f{i}c{j}"} for j, cell in enumerate(cells)]
        found.append({"box": f"f{i}", "name": _end(brief(name)) or "other lines", "cells": shown_cells})
    return Treemap(found, "\n".join(rules))


def _end(name: str) -> str:
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"


def _sum(cells: Iterable[Mapping[str, Any]]) -> int:
    return sum(cell["nbytes"] for cell in cells)


def _rule(name: str, box: Box, room: Box) -> str:
    x, y = 100 * box.x / room.width, 100 * box.y / room.height
    width, height = 100 * box.width / room.width, 100 * box.height / room.height
    return f"#{name}{{left:{x:.2f}%;top:{y:.2f}%;width:{width:.2f}%;height:{height:.2f}%}}"
