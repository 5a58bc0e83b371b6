"""All applications on one graph, and the graph before and after each."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from torch.fx import GraphModule

from ..errors import ReinplaceError
from .application import Application
from .state import Attributes, State, Step, after


class Point(NamedTuple):
    """Where an application left the graph: a state, and so many of the steps of its pass since then."""

    base: State
    steps: Sequence[Step] = ()
    number: int = 0

    def state(self) -> State:
        """Return the state there."""
        return after(self.base, self.steps[: self.number]) if self.number else self.base


@dataclasses.dataclass(frozen=True, slots=True)
class PassRun:
    """One pass that ran, whether it changed anything or not.

    Args:
        stage: its stage.
        name: the pass.
        seconds: how long it took, passes inside it included.
        applications: how many places it changed.
    """

    stage: str
    name: str
    seconds: float
    applications: int


@dataclasses.dataclass(frozen=True, slots=True)
class Crash:
    """What a pass raised.

    Args:
        stage: its stage.
        pass_name: the pass.
        rule: the rule that was being applied, and its node; empty where none was.
        error: type and message of the error.
    """

    stage: str
    pass_name: str
    rule: str
    error: str

    def __str__(self) -> str:
        rule = f", rule {self.rule}" if self.rule else ""
        return f"{self.stage or 'pipeline'} / {self.pass_name}{rule}: {self.error}"


class Ledger:
    """What passes did to one graph, application by application.

    Attributes:
        applications: the places that were changed, in their order.
        passes: the passes that ran.
        crash: the pass that raised, and what; ``None`` where none did.
    """

    def __init__(self, attributes: Attributes, start: State) -> None:
        self.applications: list[Application] = []
        self.passes: list[PassRun] = []
        self.crash: Crash | None = None
        self._attributes = attributes
        self._points = [Point(start)]

    def add(self, application: Application, point: Point) -> None:
        """Add an application, with where it left the graph."""
        self.applications.append(application)
        self._points.append(point)

    def graph_before(self, number: int) -> GraphModule:
        """Return a copy of the graph as it was before an application."""
        return self._graph(number)

    def graph_after(self, number: int) -> GraphModule:
        """Return a copy of the graph as an application left it."""
        return self._graph(number + 1)

    def _graph(self, point: int) -> GraphModule:
        if not 0 <= point < len(self._points):
            raise ReinplaceError(
                f"expected the number of one of {len(self.applications)} applications, from 0"
            )
        return self._attributes.module_of(self._points[point].state())

    @property
    def size(self) -> int:
        """How many nodes the graph had before the first pass."""
        return len(self._points[0].base)

    @property
    def matches(self) -> Mapping[str, int]:
        """How often each rule fired; passes that are not made of rules count by their names."""
        return dict(collections.Counter(a.rule or a.pass_name for a in self.applications))

    @property
    def copies_added(self) -> tuple[str, ...]:
        """The labels of all copies that were brought, in the order in which they came."""
        return tuple(label for a in self.applications for label in a.copies_added)

    @property
    def copies(self) -> tuple[int, int]:
        """How many copies the graph had before the first pass, and has after the last."""
        first, last = (sum(len(entry.copies) for entry in self._points[i].state().values()) for i in (0, -1))
        return first, last

    def by_pass(self) -> Mapping[str, Sequence[Application]]:
        """Return the applications of each pass, by its name."""
        found: dict[str, list[Application]] = {}
        for application in self.applications:
            found.setdefault(application.pass_name, []).append(application)
        return found

    def before(self, stage: str) -> Ledger:
        """Return what was done before a stage began."""
        count = next((a.number for a in self.applications if a.stage == stage), len(self.applications))
        other = self.with_findings(self.applications[:count])
        other._points = self._points[: count + 1]
        other.passes = [run for run in self.passes if run.stage != stage]
        return other

    def with_findings(self, applications: Iterable[Application]) -> Ledger:
        """Return this ledger with other notes of the same applications."""
        other = Ledger(self._attributes, self._points[0].base)
        other.passes, other.crash, other._points = self.passes, self.crash, self._points
        other.applications = list(applications)
        return other

    def assert_right(self) -> None:
        """Raise ``AssertionError`` where an application broke the contract or was not checked, naming each.

        Raises:
            ReinplaceError: nothing was to be checked, so nothing can be said.
        """
        if not any(a.finding for a in self.applications) and self.applications:
            raise ReinplaceError('expected a ledger that was checked: record(..., inputs=..., check="rules")')
        wrong = [str(a) for a in self.applications if a.is_wrong]
        left = [f"{a}: {a.finding.text}" for a in self.applications if a.finding and a.finding.is_unchecked]
        told = [*_counted(wrong, "break the contract", "breaks the contract")]
        told += _counted(left, "were not checked", "was not checked")
        if told:
            raise AssertionError("\n".join(told))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        return {
            "applications": [a.to_dict() for a in self.applications],
            "passes": [dataclasses.asdict(run) for run in self.passes],
            "crash": None if self.crash is None else dataclasses.asdict(self.crash),
        }


def _counted(lines: Sequence[str], many: str, one: str) -> list[str]:
    """Return lines below one that counts them; none where there are none."""
    head = f"1 application {one}:" if len(lines) == 1 else f"{len(lines)} applications {many}:"
    return [head, *lines] if lines else []
