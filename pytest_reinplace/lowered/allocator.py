"""What a GPU's allocator says of each line of a program that runs.

Its counters are read at each mark that :class:`.calls.Calls` makes, in bytes as they were requested: an
allocator rounds, and so do the events of a profile. The profile has no memory here, only names: what a line
takes beyond what it leaves belongs to the first operator in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from .calls import ENTERED, LEFT, MARK, Marked
from .workspace import Extern, Measured, Ran, Timeline


class Allocator:
    """The allocator of the current GPU, from now on."""

    def __init__(self) -> None:
        self._start = self._held()
        self.level()

    def level(self) -> tuple[int, int]:
        """Return the bytes that are held beyond the start, and the most since this was last asked."""
        import torch

        counted = torch.cuda.memory_stats()
        torch.cuda.reset_peak_memory_stats()
        current, highest = (counted[f"requested_bytes.all.{name}"] for name in ("current", "peak"))
        return int(current) - self._start, int(highest) - self._start

    def _held(self) -> int:
        import torch

        torch.cuda.synchronize()
        return int(torch.cuda.memory_stats()["requested_bytes.all.current"])

    def timeline(self, marks: Sequence[Marked], events: Iterable[tuple[int, Any]]) -> Timeline:
        """Return a call that is over, cut in lines: by its marks, and the events of its profile."""
        return cut([*marks, Marked(-1, ENTERED, *self.level())], events)


def cut(marks: Iterable[Marked], events: Iterable[tuple[int, Any]]) -> Timeline:
    """Cut a call in lines.

    Args:
        marks: those of the call, in the order of time, and one at its end.
        events: the events of its profile, as the seam gives them.
    """
    operators = _first_operators(events)
    running: list[_Program] = []  # a line may call what runs another program
    done: dict[int, Measured] = {}
    outside = highest = 0
    for mark in marks:
        highest = max(highest, mark.highest)
        if not running:
            outside = max(outside, mark.highest)
        for program in running:
            program.pass_to(mark)
        if mark.position == 0:
            running.append(_Program(mark.call, mark.level))
        if mark.position >= 0:
            name = operators.get((mark.call, mark.position), "")
            running[-1].lines.append(_Line(name, mark.level, mark.level, mark.level))
        elif mark.position == LEFT and running and running[-1].call == mark.call:
            program = running.pop()
            done[program.call] = program.measured()
    return Timeline(done, outside, highest)


@dataclasses.dataclass(slots=True)
class _Line:
    operator: str
    before: int
    highest: int
    after: int

    def ran(self, since: int) -> Ran:
        workspace, left = self.highest - max(self.before, self.after), self.after - self.before
        externs = (Extern(self.operator, workspace, left),) if self.operator and (workspace or left) else ()
        return Ran(self.highest - since, self.after - since, externs)


@dataclasses.dataclass(slots=True)
class _Program:
    """A program that runs: its call, the level before it, its lines."""

    call: int
    before: int
    lines: list[_Line] = dataclasses.field(default_factory=list)

    def pass_to(self, mark: Marked) -> None:
        line = self.lines[-1]
        line.highest, line.after = max(line.highest, mark.highest), mark.level

    def measured(self) -> Measured:
        return Measured(self.before, tuple(line.ran(self.before) for line in self.lines))


def _first_operators(events: Iterable[tuple[int, Any]]) -> dict[tuple[int, int], str]:
    """Return the first operator behind each mark, by the call and the position of that."""
    found: dict[tuple[int, int], str] = {}
    place: tuple[int, int] | None = None
    for _, event in events:
        if not isinstance(event, str):
            continue
        if event.startswith(MARK):
            number, position = map(int, event.removeprefix(MARK).split(":"))
            place = number, position
        elif place is not None:
            found.setdefault(place, event)
    return found
