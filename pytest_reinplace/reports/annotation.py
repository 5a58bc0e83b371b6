"""Annotations: clones as warnings at the lines of a pull request, by GitHub's workflow commands."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..base.visible import visible
from ..base.wording import bytes_of, location, plural
from .clone import Clone, clones_of

# GitHub shows ten warnings of a step and drops the rest.
MOST = 10


def commands(report: Mapping[str, Any], folder: str, workspace: str) -> list[str]:
    """Return a command for each of the lines with the largest clones.

    Args:
        report: the document.
        folder: what relative files are relative to.
        workspace: the checkout, to which GitHub wants them relative.
    """
    lines: dict[object, list[Clone]] = {}
    for clone in clones_of(report):
        lines.setdefault(clone.source or (clone.test, clone.graph, clone.outcome), []).append(clone)
    ordered = sorted(lines.values(), key=lambda clones: -sum(clone.nbytes for clone in clones))
    return [_command(clones, folder, workspace) for clones in ordered[:MOST]]


def _command(clones: list[Clone], folder: str, workspace: str) -> str:
    first, size = clones[0], bytes_of(sum(clone.nbytes for clone in clones))
    properties = {}
    found = location(first.source)
    if found is not None:
        file = os.path.relpath(os.path.join(folder, found[0]), workspace)
        properties = {"file": found[0] if file.startswith("..") else file, "line": str(found[1])}
    count = "cloned" if len(clones) == 1 else f"and others, {plural(len(clones), 'clone')}"
    properties["title"] = f"{first.data['label']} {count}, {size}"
    text = first.sentence
    if first.blockers:
        text += f"; held back by {first.blockers}"
    if first.data["hint"]:
        text += f"; hint: {first.data['hint']}"
    text += f"; in {first.test}"
    given = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::warning {given}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return visible(text, 2000).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
