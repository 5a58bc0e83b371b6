"""The clones of a report, the largest first."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..base.wording import held_by
from ..record import plain

_UNKNOWN = "for an unknown reason"


@dataclasses.dataclass(frozen=True, slots=True)
class Clone:
    """One clone, and where it is.

    Args:
        test: the id of the test.
        graph: the position of its graph in the test.
        outcome: the position of its outcome in the graph.
        data: the outcome as the document has it.
        sentence: why it was cloned.
    """

    test: str
    graph: int
    outcome: int
    data: Mapping[str, Any]
    sentence: str

    @property
    def nbytes(self) -> int:
        """The bytes that it holds."""
        return int(self.data["nbytes"])

    @property
    def source(self) -> str:
        """The user's line, ``"file:line"``, empty where it is not known."""
        return self.data["source"] or ""

    @property
    def follows(self) -> str:
        """The clone that it is there for alone, ``"<label> at <line>"``, empty where there is none."""
        found = self.data.get("follows")
        return plain.named(found) if found else ""

    @property
    def blockers(self) -> str:
        """What holds it back, the nearest three; empty where nothing does."""
        return held_by(self.data["blockers"])


def clones_of(report: Mapping[str, Any]) -> list[Clone]:
    """Return all clones of a document.

    Of two of one size the one that the document has first comes first, and one that follows last.
    """
    reasons = report["reasons"]
    found = [
        Clone(test, i, j, outcome, plain.told(outcome, reasons.get(outcome["reason"], _UNKNOWN)))
        for test, data in sorted(report["tests"].items())
        for i, graph in enumerate(data["graphs"])
        for j, outcome in enumerate(graph["outcomes"])
        if not outcome["reinplaced"]
    ]
    return sorted(found, key=lambda clone: (-clone.nbytes, bool(clone.follows)))
