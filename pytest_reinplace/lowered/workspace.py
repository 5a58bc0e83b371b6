"""What really was allocated in each line of a program, and what calls into libraries allocate for themselves.

The events of one profiled call are cut at the marks that :class:`.calls.Calls` puts before each line, so
each allocation belongs to a line by its time, on whatever thread it was made. Within a line, the outermost
operator that it happened in is *the call* that it belongs to. Its workspace is the most that it held beyond
what it leaves: *highest level within it - level at its end*. A kernel that Inductor generated is no operator:
what such a one, or the program itself, allocates belongs to no call, and must be known to the static run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from .calls import ENTERED, LEFT, MARK


@dataclasses.dataclass(frozen=True, slots=True)
class Extern:
    """What an operator did to memory in one line.

    Args:
        operator: its name, ``"aten::convolution"``.
        workspace: the most bytes that it held beyond what it leaves.
        left: the bytes that it leaves, less what it released.
    """

    operator: str
    workspace: int
    left: int


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    """What happened in one line that ran.

    Args:
        highest: the most bytes that were held, above the level when the program began.
        after: what was held when the next line began.
        externs: the operators in it that allocated or released.
    """

    highest: int
    after: int
    externs: tuple[Extern, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """What happened in one call of a program.

    Args:
        before: the level when its first line began, above that at the start of the profile.
        ran: one for each position.
    """

    before: int
    ran: tuple[Ran, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Timeline:
    """A profiled call, cut in lines.

    Args:
        calls: what happened in each call of a program, by its number.
        outside: the most bytes that were held while no line of a program ran.
        highest: the most bytes that were held at all.
    """

    calls: Mapping[int, Measured]
    outside: int
    highest: int


def timeline(events: Iterable[tuple[int, Any]]) -> Timeline:
    """Cut the events of a profile, as the seam gives them, in lines."""
    reading = _Reading()
    for time, event in events:
        if not isinstance(event, str):
            size, _, operators = event
            reading.change(size, operators)
        elif event.startswith(MARK):
            number, position = map(int, event.removeprefix(MARK).split(":"))
            reading.mark(number, position, time)
    return reading.done()


@dataclasses.dataclass(slots=True)
class _Operator:
    name: str
    highest: int
    before: int
    after: int


@dataclasses.dataclass(slots=True)
class _Line:
    """A line that runs: since when, the highest level in it, its operators by when they began."""

    since: int
    highest: int
    after: int
    operators: dict[int, _Operator] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class _Program:
    """A program that runs: its number, the level before it, its lines."""

    number: int
    before: int = 0
    lines: list[_Line] = dataclasses.field(default_factory=list)

    def measured(self) -> Measured:
        ran = []
        for line in self.lines:
            externs = tuple(
                Extern(one.name, one.highest - max(one.before, one.after), one.after - one.before)
                for one in line.operators.values()
            )
            ran.append(Ran(line.highest - self.before, line.after - self.before, externs))
        return Measured(self.before, tuple(ran))


class _Reading:
    def __init__(self) -> None:
        self._level = self._outside = self._highest = 0
        self._running: list[_Program] = []
        self._done: dict[int, Measured] = {}

    def mark(self, number: int, position: int, time: int) -> None:
        if position == ENTERED:
            self._running.append(_Program(number))
            return
        program = self._running[-1]
        if position == LEFT:
            self._running.pop()
            self._done[number] = program.measured()
            return
        if position == 0:
            program.before = self._level
        program.lines.append(_Line(time, self._level, self._level))

    def change(self, size: int, operators: tuple[tuple[int, str], ...]) -> None:
        before, self._level = self._level, self._level + size
        self._highest = max(self._highest, self._level)
        programs = [one for one in self._running if one.lines]  # a line may call what runs another program
        if not programs:
            self._outside = max(self._outside, self._level)
        for program in programs:
            line = program.lines[-1]
            line.highest, line.after = max(line.highest, self._level), self._level
            inside = next((one for one in operators if one[0] >= line.since), None)
            if inside is not None:
                operator = line.operators.setdefault(inside[0], _Operator(inside[1], before, before, before))
                operator.highest, operator.after = max(operator.highest, self._level), self._level

    def done(self) -> Timeline:
        return Timeline(self._done, self._outside, self._highest)
