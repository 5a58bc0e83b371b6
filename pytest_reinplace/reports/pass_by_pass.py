"""What passes and rules did to the graphs of a report: each application, or all of a pass together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..record import plain

# More applications than these are summed by pass, where a reader is to see them all.
MOST_SINGLY = 12
HEADS = ("times", "nodes", "copies", "bytes", "ms", "pass")


@dataclasses.dataclass(frozen=True, slots=True)
class Applied:
    """One application, and where it is.

    Args:
        test: the id of the test.
        position: of its graph in the test.
        data: as the document has it.
    """

    test: str
    position: int
    data: Mapping[str, Any]

    @property
    def line(self) -> str:
        """The application as one line, as ``pytest-reinplace blame`` words it, with its time."""
        took = milliseconds(self.data["seconds"])
        return f"{self.data['graph']} {plain.applied().told(self.data)} ({took} ms)"

    @property
    def is_wrong(self) -> bool:
        """Whether it broke the contract."""
        return bool(plain.applied().is_wrong(self.data))


@dataclasses.dataclass(frozen=True, slots=True)
class Sum:
    """All applications of one pass.

    Args:
        name: the stage, and the pass.
        applied: its applications, at least one.
    """

    name: str
    applied: Sequence[Applied]

    @property
    def seconds(self) -> float:
        """How long they took."""
        return float(sum(one.data["seconds"] for one in self.applied))

    @property
    def cells(self) -> list[str]:
        """The row of a table, as ``HEADS`` says; and what is wrong, or not checked."""
        data = [one.data for one in self.applied]
        added, removed = (sum(len(one[f"copies_{what}"]) for one in data) for what in ("added", "removed"))
        nodes, nbytes = (sum(one[key] for one in data) for key in ("nodes", "copy_bytes"))
        copies = " ".join(filter(None, [f"+{added}" if added else "", f"-{removed}" if removed else ""]))
        return [
            str(len(data)),
            f"{nodes:+d}",
            copies or "0",
            f"{nbytes:+d}" if nbytes else "0",
            milliseconds(self.seconds),
            self.name + self._odd(data),
        ]

    @property
    def is_wrong(self) -> bool:
        """Whether one of them broke the contract."""
        return any(one.is_wrong for one in self.applied)

    @staticmethod
    def _odd(data: Sequence[Mapping[str, Any]]) -> str:
        applied = plain.applied()
        wrong, unchecked = sum(map(applied.is_wrong, data)), sum(map(applied.is_unchecked, data))
        told = [f"{wrong} wrong"] if wrong else []
        told += [f"{unchecked} not checked"] if unchecked else []
        return f" ({', '.join(told)})" if told else ""


def applied_in(report: Mapping[str, Any]) -> list[Applied]:
    """Return all applications of a document, in their order, by the ids of tests."""
    return [
        Applied(test, position, one)
        for test, data in sorted(report["tests"].items())
        for position, graph in enumerate(data["graphs"])
        for one in graph.get("applications") or ()
    ]


def is_recorded(report: Mapping[str, Any]) -> bool:
    """Return whether it is known of any graph what passes and rules did to it."""
    graphs = (graph for data in report["tests"].values() for graph in data["graphs"])
    return any(graph.get("applications") is not None for graph in graphs)


def by_pass(applied: Sequence[Applied]) -> list[Sum]:
    """Return the sums of all passes: of what is wrong first, then of what took longest."""
    found: dict[str, list[Applied]] = {}
    for one in applied:
        found.setdefault(f"{one.data['stage'] or 'pipeline'} / {one.data['pass']}", []).append(one)
    sums = [Sum(name, those) for name, those in found.items()]
    return sorted(sums, key=lambda one: (not one.is_wrong, -one.seconds))


def title(applied: Sequence[Applied]) -> str:
    """Return the heading, with how many applications there are."""
    tests = len({one.test for one in applied})
    count = "1 application" if len(applied) == 1 else f"{len(applied)} applications"
    return (
        f"pass by pass: {count} in {tests} test{'' if tests == 1 else 's'}"
        if applied
        else ("pass by pass: no pass changed anything")
    )


def milliseconds(seconds: float) -> str:
    """Return seconds as milliseconds, as many digits as tell something."""
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"
