"""The clones of a report, the largest first, and what is to be said of its graphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..base.wording import suspicion

_MOST_BLOCKERS = 3


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
    def blockers(self) -> str:
        """What holds it back, the nearest three; empty where nothing does."""
        return held_by(self.data["blockers"])


class Remark(NamedTuple):
    """What is to be said of a graph.

    Args:
        test: the id of its test.
        text: the sentence.
        is_wrong: whether it was written wrongly, or may be; otherwise it could not be judged.
    """

    test: str
    text: str
    is_wrong: bool


def held_by(blockers: Sequence[Mapping[str, Any]]) -> str:
    """Return the first three of the nodes that hold a clone back, and how many more do."""
    texts = [
        f"{b['node']} ({b['op']})" + (f" at {b['source']}" if b["source"] else "")
        for b in blockers[:_MOST_BLOCKERS]
    ]
    left = len(blockers) - len(texts)
    return ", ".join(texts) + (f" and {left} more" if left else "")


def clones_of(report: Mapping[str, Any]) -> list[Clone]:
    """Return all clones of a document; of two of one size the one that the document has first."""
    found = [
        Clone(test, i, j, outcome, report["reasons"].get(outcome["reason"], "for an unknown reason"))
        for test, data in sorted(report["tests"].items())
        for i, graph in enumerate(data["graphs"])
        for j, outcome in enumerate(graph["outcomes"])
        if not outcome["reinplaced"]
    ]
    return sorted(found, key=lambda clone: -clone.nbytes)


def remarks_of(report: Mapping[str, Any]) -> list[Remark]:
    """Return what is to be said of graphs: of those that are or may be wrong, then of those not judged."""
    found = []
    for test, data in sorted(report["tests"].items()):
        for graph in data["graphs"]:
            if graph["problem"]:
                text = f"{graph['graph']} could not be judged: {graph['problem']}"
                found.append(Remark(test, text, is_wrong=False))
            if graph["suspicious"]:
                text = suspicion(graph["graph"], graph["suspicious"], graph.get("verified"))
                found.append(Remark(test, text, is_wrong=True))
    return sorted(found, key=lambda remark: not remark.is_wrong)
