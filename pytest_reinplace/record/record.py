"""What a test reported: the data that the terminal section and the JSON file are made of."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from .counts import counts_of

# Raised when a key of the document of all records changes its meaning or goes; new keys may come without.
SCHEMA = 1
# The name under which a test's graphs travel with its report, from xdist workers and into JUnit's file.
PROPERTY = "reinplace"
# The attribute of a report that brings the pictures of these graphs: JUnit's file has no use for them.
PICTURES = "reinplace_pictures"
# And the one that brings what was done to them, if that was recorded.
LEDGERS = "reinplace_ledgers"
# And the one that brings what measured calls held, if that was explained.
MEMORY = "reinplace_memory"
# The name under which what was measured travels along.
MEASURED = "reinplace_measured"
# The attribute of a report that brings what came where a file lists expected clones.
EXPECTED = "reinplace_expected"


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """One test.

    Args:
        nodeid: its id.
        outcome: ``"passed"``, ``"failed"`` or ``"skipped"``.
        graphs: one mapping per compiled graph, as ``CapturedGraph.to_dict`` gives it, with its ``picture``;
            and with its ``applications``, if they were recorded.
        measured: what was measured, as ``Result.to_dict`` gives it; ``None`` where nothing was.
        memory: what each measured call held, as ``Memory.figures`` gives it; ``None`` where nobody asked.
    """

    nodeid: str
    outcome: str
    graphs: tuple[dict[str, Any], ...]
    measured: dict[str, Any] | None = None
    memory: tuple[dict[str, Any], ...] | None = None

    @classmethod
    def of(cls, report: pytest.TestReport) -> Record | None:
        """Read a test's report; ``None`` when nothing was captured in it."""
        found = [value for name, value in report.user_properties if name == PROPERTY]
        if not found:
            return None
        graphs, drawn = json.loads(str(found[-1])), json.loads(getattr(report, PICTURES, "[]"))
        pictures = drawn if len(drawn) == len(graphs) else [None] * len(graphs)
        both = zip(_with_ledgers(graphs, report), pictures, strict=True)
        figures = [json.loads(str(value)) for name, value in report.user_properties if name == MEASURED]
        return cls(
            report.nodeid,
            report.outcome,
            tuple({**graph, "picture": one} for graph, one in both),
            figures[-1] if figures else None,
            tuple(json.loads(getattr(report, MEMORY))) if hasattr(report, MEMORY) else None,
        )

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        """The outcomes of all candidates."""
        return [outcome for graph in self.graphs for outcome in graph["outcomes"]]

    @property
    def clones(self) -> list[dict[str, Any]]:
        """The outcomes of those that were cloned."""
        return [outcome for outcome in self.outcomes if not outcome["reinplaced"]]

    def counts(self) -> dict[str, int]:
        """Return the numbers that a summary shows."""
        return counts_of(self.graphs)


def _with_ledgers(graphs: list[dict[str, Any]], report: pytest.TestReport) -> list[dict[str, Any]]:
    ledgers = json.loads(getattr(report, LEDGERS, "[]"))
    if len(ledgers) != len(graphs):
        return graphs
    return [
        graph if ledger is None else {**graph, "applications": ledger}
        for graph, ledger in zip(graphs, ledgers, strict=True)
    ]
