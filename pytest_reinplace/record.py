"""What a test reported: the data that the terminal section and the JSON file are made of."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest

from .counts import counts_of
from .item_capture import PICTURES, PROPERTY

_TRACE = re.compile(r"DEBUG\s+torch\.__trace:\S+\s*$")


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """One test.

    Args:
        nodeid: its id.
        outcome: ``"passed"``, ``"failed"`` or ``"skipped"``.
        graphs: one mapping per compiled graph, as ``CapturedGraph.to_dict`` gives it, with its ``picture``.
    """

    nodeid: str
    outcome: str
    graphs: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, report: pytest.TestReport) -> Record | None:
        """Read a test's report; ``None`` when nothing was captured in it."""
        found = [value for name, value in report.user_properties if name == PROPERTY]
        if not found:
            return None
        graphs, drawn = json.loads(str(found[-1])), json.loads(getattr(report, PICTURES, "[]"))
        pictures = drawn if len(drawn) == len(graphs) else [None] * len(graphs)
        both = zip(graphs, pictures, strict=True)
        return cls(report.nodeid, report.outcome, tuple({**graph, "picture": one} for graph, one in both))

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


class Records:
    """Collects the records of a session, a plugin of its own: only the controller of a run has one."""

    def __init__(self) -> None:
        self._by_id: dict[str, Record] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that has run; the last run of a repeated test counts."""
        record = Record.of(report) if report.when == "call" else None
        if record is not None:
            self._by_id[record.nodeid] = record

    def sorted(self) -> list[Record]:
        """Return the records by test id, whatever the order of running was."""
        return [self._by_id[nodeid] for nodeid in sorted(self._by_id)]


def without_trace_log(sections: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return captured output without torch's trace log, whose records have no text."""
    kept = []
    for name, text in sections:
        lines = text.splitlines(keepends=True)
        left = "".join(line for line in lines if not _TRACE.match(line))
        if left or not text:
            kept.append((name, left))
    return kept
