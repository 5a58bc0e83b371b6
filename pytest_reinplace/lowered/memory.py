"""The peak of a call, taken apart: what its programs take, and what calls into libraries take besides.

One equation holds it together: *measured peak = the most, over all lines of all programs, of (level when the
program began + what the program holds + the workspace of the call in that line)*, or what is held while no
program runs. What the program holds is known without running a kernel; the other figures are measured in a
call of their own, with marks in it, and the peak in one without. What is left is *unexplained*.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..call import peak
from . import _torch
from .allocation import Allocation, Taken
from .allocator import Allocator
from .called import Call
from .calls import Calls
from .program import ProgramError, UntoldError, possible, taken
from .workspace import Measured, Timeline, timeline

_CALLS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Workspace:
    """What a call into a library takes for itself while it runs.

    Args:
        operator: the operator: ``"aten::convolution"``.
        nbytes: the most bytes that it holds beyond what it leaves.
        position: the position of its line.
        line: its line in the program, from 1.
        text: that line.
        source: the user's line, empty where it is not known.
    """

    operator: str
    nbytes: int
    position: int
    line: int
    text: str
    source: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        data = dataclasses.asdict(self)
        return {"bytes": data.pop("nbytes"), **data}


@dataclasses.dataclass(frozen=True, slots=True)
class Gap:
    """A line after which another number of bytes is held than the static run says.

    Args:
        position: its position.
        line: its line in the program.
        text: that line.
        nbytes: how many bytes more are held since this line.
        operator: the call that left them, empty where there is none.
    """

    position: int
    line: int
    text: str
    nbytes: int
    operator: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Lowered:
    """One call of a graph's program.

    Args:
        graph: the graph, as reports name it: ``"[fw 0/0]"``.
        taken: what the program takes; ``None`` where that is not known.
        problem: why it is not known; else empty.
        before: the bytes that were held when it began, above the level before everything.
        workspaces: what calls into libraries take for themselves.
        gaps: where the real call holds other bytes.
    """

    graph: str
    taken: Taken | None
    problem: str = ""
    before: int = 0
    workspaces: tuple[Workspace, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def peak(self) -> int:
        """The most bytes at a time: what was held before, what the program holds, and the workspace."""
        return self.before + max((nbytes for nbytes, _ in self._with_workspaces()), default=0)

    @property
    def bound(self) -> int:
        """The bytes that must be held at some time: what was held before, and what the program needs."""
        return self.before + (self.taken.bound if self.taken else 0)

    @property
    def peak_at(self) -> int:
        """The first position at which that is held."""
        found = [*self._with_workspaces()]
        return next((i for nbytes, i in found if nbytes + self.before == self.peak), 0)

    @property
    def at_peak(self) -> tuple[Allocation, ...]:
        """What the program holds at its peak, the largest first."""
        return self.taken.alive(self.peak_at) if self.taken else ()

    @property
    def workspace_at_peak(self) -> Workspace | None:
        """What the call at the peak takes for itself."""
        here = [one for one in self.workspaces if one.position == self.peak_at]
        return max(here, key=lambda one: one.nbytes, default=None)

    def _with_workspaces(self) -> Iterator[tuple[int, int]]:
        largest: dict[int, int] = {}
        for one in self.workspaces:
            largest[one.position] = max(one.nbytes, largest.get(one.position, 0))
        for i, level in enumerate(self.taken.levels if self.taken else ()):
            yield level.highest + largest.get(i, 0), i

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {
            "graph": self.graph,
            "problem": self.problem,
            "before": self.before,
            "bound": self.bound,
            "peak": self.peak,
            "peak_at": self.peak_at,
            **(self.taken.to_dict() if self.taken else {}),
            "workspaces": [one.to_dict() for one in self.workspaces],
            "gaps": [dataclasses.asdict(one) for one in self.gaps],
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one call.

    Args:
        measured: its peak, above the level before it.
        programs: the calls of programs in it, in their order.
        outside: the most bytes that were held while no program ran.
    """

    measured: int
    programs: tuple[Lowered, ...] = ()
    outside: int = 0

    @property
    def at_peak(self) -> Lowered | None:
        """The call of a program that holds most; ``None`` where more is held outside, or none is known."""
        known = [one for one in self.programs if one.taken is not None]
        most = max(known, key=lambda one: one.peak, default=None)
        return most if most is not None and most.peak >= self.outside else None

    @property
    def explained(self) -> int:
        """The peak as the equation has it."""
        return max([self.outside, *(one.peak for one in self.programs if one.taken is not None)])

    @property
    def unexplained(self) -> int:
        """The bytes by which the measured peak is more than that."""
        return self.measured - self.explained

    @property
    def most_needed(self) -> Lowered | None:
        """The call of a program that has the highest lower bound; ``None`` where none is known."""
        known = [one for one in self.programs if one.taken is not None]
        return max(known, key=lambda one: one.bound, default=None)

    @property
    def bound(self) -> int:
        """The bytes that its programs must hold at some time: a lower bound of the peak."""
        return self.most_needed.bound if self.most_needed else 0

    @property
    def over_bound(self) -> float | None:
        """The measured peak by the lower bound; ``None`` where that is 0."""
        return self.measured / self.bound if self.bound else None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {
            "measured_peak": self.measured,
            "lower_bound": self.bound,
            "over_bound": self.over_bound,
            "explained": self.explained,
            "unexplained": self.unexplained,
            "outside": self.outside,
            "programs": [one.to_dict() for one in self.programs],
        }

    def figures(self) -> dict[str, Any]:
        """Return the figures alone as JSON-ready data, for reports; what is not known is ``None``."""
        return {
            "measured_peak": self.measured,
            "lower_bound": self.bound,
            "outside": self.outside,
            "unexplained": self.unexplained,
            "programs": [
                {
                    "graph": one.graph,
                    "problem": one.problem,
                    "before": one.before,
                    "peak": one.peak if one.taken else None,
                    "static_peak": one.taken.peak if one.taken else None,
                    "static_bound": one.taken.bound if one.taken else None,
                    "needed_by": one.taken.need.text if one.taken else "",
                }
                for one in self.programs
            ],
        }


def memory(
    calls: Calls, run: Callable[[], Any], restore: Callable[[], None], device: str
) -> tuple[Any, Memory]:
    """Make a call twice, once to measure its peak and once to follow it; return its result and its memory.

    A call in which something is compiled is made again before it is measured. Where a program asks for
    numbers, there is another call that notes them, and where bytes are unexplained, two that measure the peak
    again. What the last call wrote stays.

    Args:
        calls: in whose ``lowering`` it was compiled.
        run: makes the call; it has been compiled before.
        restore: puts back what the call has written.
        device: ``"cpu"`` or ``"cuda"``, whose memory it is.
    """
    for _ in range(_CALLS):
        before = calls.lowered
        result, measured = peak.measured(run, device)
        restore()
        if calls.lowered == before:  # a graph for other sizes or states takes memory while it is compiled
            break
    found = _followed(calls, run, device)
    made = list(calls.found)
    known = [_taken(call, device) for call in made]
    if any(isinstance(one, UntoldError) for one in known):
        restore()
        with calls.noting(asked=True):
            run()
        known = [_taken(_with_answers(call, calls.found[i : i + 1]), device) for i, call in enumerate(made)]
    programs = (_lowered(call, known[i], found.calls.get(i)) for i, call in enumerate(made))
    told = Memory(measured, tuple(programs), found.outside)
    return result, _again(told, run, restore) if told.unexplained and device == "cpu" else told


def _again(found: Memory, run: Callable[[], Any], restore: Callable[[], None]) -> Memory:
    """Return what is known once the peak is measured after a call that was profiled, if that explains it.

    A profile tells of a release only where it saw the allocation. What a call releases of the one before, say
    the gradients that it sets to ``None``, is not seen where that one compiled, and the peak seems higher.
    """
    for _ in range(2):  # the first takes under a profile what the second releases
        restore()
        _, measured = peak.measured(run)
    again = dataclasses.replace(found, measured=measured)
    return found if again.unexplained else again


def _followed(calls: Calls, run: Callable[[], Any], device: str) -> Timeline:
    if device == "cpu":
        with calls.noting():
            _, profile = peak.profiled(run)
        return timeline(_torch.events(profile))
    allocator = Allocator()
    with calls.noting(level=allocator.level):
        _, profile = peak.profiled(run)
    return allocator.timeline(calls.marks, _torch.events(profile))


def _with_answers(call: Call, told: Sequence[Call]) -> Call:
    """Return a call with what another one, if it ran the same lines, tells of the numbers it asked for."""
    if not told or told[0].lines != call.lines:
        return call
    return dataclasses.replace(call, answers=told[0].answers, results=told[0].results)


def _taken(call: Call, device: str) -> Taken | ProgramError:
    try:
        # Without lines its program was not run in Python, say by a CUDA graph: nobody knows its conditions.
        return taken(call, device) if call.lines else possible(call.program, call.inputs, device)
    except ProgramError as error:
        return error


def _lowered(call: Call, known: Taken | ProgramError, measured: Measured | None) -> Lowered:
    graph, before = call.program.graph, measured.before if measured else 0
    if isinstance(known, ProgramError):
        return Lowered(graph, None, str(known), before)
    if measured is None:
        return Lowered(graph, known, "", before)
    workspaces, gaps = tuple(_workspaces(call, known, measured)), tuple(_gaps(known, measured))
    return Lowered(graph, known, "", before, workspaces, gaps)


def _workspaces(call: Call, known: Taken, measured: Measured) -> Iterator[Workspace]:
    for i, (level, ran) in enumerate(zip(known.levels, measured.ran, strict=True)):
        for one in ran.externs:
            if one.workspace:
                source = call.program.source(level.line)
                yield Workspace(one.operator, one.workspace, i, level.line, level.text, source)


def _gaps(known: Taken, measured: Measured) -> Iterator[Gap]:
    missing = 0
    for i, (level, ran) in enumerate(zip(known.levels, measured.ran, strict=True)):
        before, missing = missing, ran.after - level.after
        if missing != before:
            operator = ran.externs[-1].operator if ran.externs else ""
            yield Gap(i, level.line, level.text, missing - before, operator)
