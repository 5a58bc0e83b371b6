"""How outcomes are worded: bytes, places and reasons, in the terminal and in failures."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..passes import Outcome

_MOST_BLOCKERS = 3
_MOST_CLONES = 10
_MOST_LABELS = 6
UPDATE = "if that is right, --reinplace-update-clones writes the list"
"""What to do about other clones than those that a file lists."""


def bytes_of(count: int) -> str:
    """Return bytes for a person, with the exact number: ``"1.5 KiB (1536 B)"``."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit} ({count} B)"


def plural(count: int, noun: str) -> str:
    """Return ``"1 clone"``, ``"2 clones"``, ``"2 copies"``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun.removesuffix('y')}ies" if noun.endswith("py") else f"{count} {noun}s"


def listed(labels: Iterable[str]) -> str:
    """Return labels for a sentence: the first six, and how many more there are."""
    found = list(labels)
    text = ", ".join(found[:_MOST_LABELS])
    return text if len(found) <= _MOST_LABELS else f"{text} and {len(found) - _MOST_LABELS} more"


def path_of(path: Path) -> str:
    """Return a path for a person: from the working folder where the file is below it, else whole."""
    return os.path.relpath(path) if path.absolute().is_relative_to(Path.cwd()) else str(path)


def location(source: str) -> tuple[str, int] | None:
    """Return file and line of ``"file:line"``, ``None`` for any other text."""
    file, _, line = source.rpartition(":")
    return (file, int(line)) if file and line.isascii() and line.isdigit() else None


def clone_lines(outcome: Outcome) -> list[str]:
    """Return why a candidate was cloned, label and bytes first; two lines at most."""
    return alike_lines([outcome])


def alike(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Return clones in groups of those that one line makes for one reason, e.g. in each layer of a model."""
    groups: dict[tuple[object, ...], list[Outcome]] = {}
    for number, o in enumerate(outcomes):
        cause = str(o.follows) if o.follows else ""
        key = o.label, o.graph, o.source or number, o.reason, cause, o.hint
        groups.setdefault(key, []).append(o)
    return list(groups.values())


def alike_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """Return why the clones of one group of :func:`alike` were made, with their number and their bytes."""
    if len(outcomes) == 1:
        return outcomes[0].lines()
    size = sum(o.nbytes for o in outcomes)
    first, *rest = dataclasses.replace(outcomes[0], nbytes=size).lines()
    told = f"{bytes_of(size)}, "
    return [f"{len(outcomes)} times: {first.replace(told, f'{bytes_of(size)} together, ', 1)}", *rest]


def explained(outcomes: Iterable[Outcome]) -> list[str]:
    """Return why clones were made, those of one line and reason together, the first ten of them."""
    groups = alike(outcomes)
    lines = [f"  {line}" for outcomes in groups[:_MOST_CLONES] for line in alike_lines(outcomes)]
    left = sum(map(len, groups[_MOST_CLONES:]))
    return [*lines, f"  and {plural(left, 'more clone')}"] if left else lines


def difference(wanted: Counter[str], came: Counter[str], noun: str = "clone") -> str:
    """Return in how far clones, or what ``noun`` says, are not the expected ones; empty where they are."""
    found, unexpected, missing = [], came - wanted, wanted - came
    if unexpected:
        count = plural(unexpected.total(), f"unexpected {noun}")
        found.append(f"{count}: {listed(unexpected.elements())}")
    if missing:
        count = plural(missing.total(), f"expected {noun}")
        verb = "is" if missing.total() == 1 else "are"
        found.append(f"{count} {verb} missing: {listed(missing.elements())}")
    return "; ".join(found)


def held_by(blockers: Sequence[Mapping[str, Any]]) -> str:
    """Return the first three of the nodes that hold a clone back, and how many more do."""
    texts = [
        f"{b['node']} ({b['op']})" + (f" at {b['source']}" if b["source"] else "")
        for b in blockers[:_MOST_BLOCKERS]
    ]
    left = len(blockers) - len(texts)
    return ", ".join(texts) + (f" and {left} more" if left else "")


def suspicion(graph: str, labels: Sequence[str], verified: Mapping[str, Any] | None) -> str:
    """Return what is to be said of a graph in which the pass wrote what our analysis forbids.

    Args:
        graph: its id.
        labels: what was written; nothing is said where there are none.
        verified: what comparing the graph's first call gave, if it was compared.
    """
    if not labels:
        return ""
    found = verified or {"status": "", "text": ""}
    ends = {
        "same": "; its first call computed the same",
        "different": f"; on its first call {found['text']}",
        "not-checked": f"; not compared: {found['text']}",
    }
    verb = "is" if found["status"] == "different" else "may be"
    text = f"{graph} {verb} miscompiled: {', '.join(labels)} in place although our analysis forbids it"
    return text + ends.get(found["status"], "")
