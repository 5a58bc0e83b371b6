"""Annotations: clones at the lines of a pull request, by GitHub's workflow commands."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..base.visible import visible
from ..base.wording import bytes_of, location, plural
from ..compare.clones import NEW, Change
from ..compare.comparison import Comparison, Row
from .clone import Clone, clones_of

# GitHub shows ten warnings of a step, ten errors and ten notices, and drops the rest.
MOST = 10


class Workflow(NamedTuple):
    """Where the lines are.

    Args:
        folder: what relative files are relative to.
        workspace: the checkout, to which GitHub wants them relative.
    """

    folder: str
    workspace: str

    @classmethod
    def running(cls) -> Workflow | None:
        """Return that of this process, ``None`` outside a workflow."""
        if os.environ.get("GITHUB_ACTIONS") != "true":
            return None
        return cls(os.getcwd(), os.environ.get("GITHUB_WORKSPACE") or os.getcwd())

    def command(self, kind: str, source: str, title: str, text: str) -> str:
        """Return an annotation, at the line where one is known."""
        properties = {"title": title}
        if found := location(source):
            file = os.path.relpath(os.path.join(self.folder, found[0]), self.workspace)
            file = found[0] if file.startswith("..") else file
            properties = {"file": file, "line": str(found[1]), "title": title}
        given = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
        return f"::{kind} {given}::{_escaped(text)}"


def commands(report: Mapping[str, Any], workflow: Workflow) -> list[str]:
    """Return a warning for each of the lines with the largest clones of a document."""
    lines: dict[object, list[Clone]] = {}
    for clone in clones_of(report):
        lines.setdefault(clone.source or (clone.test, clone.graph, clone.outcome), []).append(clone)
    ordered = sorted(lines.values(), key=lambda clones: -sum(clone.nbytes for clone in clones))
    return [_warning(sorted(clones, key=lambda c: bool(c.follows)), workflow) for clones in ordered[:MOST]]


def _warning(clones: list[Clone], workflow: Workflow) -> str:
    first, size = clones[0], bytes_of(sum(clone.nbytes for clone in clones))
    count = "cloned" if len(clones) == 1 else f"and others, {plural(len(clones), 'clone')}"
    title = f"{first.data['label']} {count}, {size}"
    text = first.sentence
    if first.blockers:
        text += f"; held back by {first.blockers}"
    if first.data["hint"]:
        text += f"; hint: {first.data['hint']}"
    return workflow.command("warning", first.source, title, f"{text}; in {first.test}")


def compared(comparison: Comparison, workflow: Workflow) -> list[str]:
    """Return an annotation for each of the lines with the largest new clones.

    It is an error where a limit allows fewer, otherwise a notice: that takes no place from the warnings.
    """
    lines: dict[object, list[tuple[Row, Change]]] = {}
    for row in comparison.rows:
        for change in row.clones:
            if change.is_new:
                lines.setdefault(change.shown.source or (row.nodeid, change), []).append((row, change))
    ordered = sorted(lines.values(), key=lambda found: -_size(found))
    return [_new(found, workflow) for found in ordered[:MOST]]


def _size(found: list[tuple[Row, Change]]) -> int:
    return sum(change.shown.nbytes for _, change in found)


def _new(found: list[tuple[Row, Change]], workflow: Workflow) -> str:
    row, first = max(found, key=lambda pair: (pair[0].refused, not pair[1].shown.follows))
    count = "is a new clone" if len(found) == 1 else f"and others, {plural(len(found), 'new clone')}"
    title = f"{first.shown.label} {count}, {bytes_of(_size(found))}"
    kind = "error" if row.refused else "notice"
    text = f"{NEW[first.kind]} {first.text}{first.help}; in {row.nodeid}"
    return workflow.command(kind, first.shown.source, title, text)


def _escaped(text: str) -> str:
    return visible(text, 2000).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
