"""Calls of programs as ``lowered`` tells them, without one that is compiled."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from pytest_reinplace.lowered.allocation import Allocation, Level, Origin, Taken
from pytest_reinplace.lowered.memory import Gap, Lowered, Memory, Workspace
from pytest_reinplace.memory_views.drawn import Drawn, Side, drawn


def allocation(
    name: str = "buf0", nbytes: int = 64, born: int = 0, freed: int | None = None, **more: Any
) -> Allocation:
    """Return a storage; its moments are its positions, and one more."""
    moments = (born + 1, None if freed is None else freed + 1)
    return Allocation(
        name, nbytes, born + 10, f"{name} = empty()", born, freed, **{"moments": moments, **more}
    )


class _Run:
    """Takes and releases at random, and counts as a run of a program does."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.found: list[Allocation] = []
        self.inputs: list[Allocation] = []
        self.levels: list[Level] = []
        self.moment = self.level = 0

    def change(self, by: int) -> None:
        self.moment += 1
        self.level += by
        last = self.levels[-1]
        if self.level > last.highest:
            last = dataclasses.replace(last, highest=self.level, moment=self.moment)
        self.levels[-1] = dataclasses.replace(last, after=self.level)

    def take(self) -> None:
        nbytes, position = self.random.choice((0, 8, 64, 100, 4096)), len(self.levels) - 1
        self.change(nbytes)
        name, origin = f"buf{len(self.found)}", Origin(("mm",), "model.py:3")
        moments = self.moment, None
        self.found.append(allocation(name, nbytes, position, origin=origin, moments=moments))

    def release(self, among: list[Allocation]) -> None:
        living = [i for i, one in enumerate(among) if one.freed is None]
        if living:
            i = self.random.choice(living)
            self.change(-among[i].nbytes)
            moments = among[i].moments[0], self.moment
            among[i] = dataclasses.replace(among[i], freed=len(self.levels) - 1, moments=moments)


def program(seed: int = 0, positions: int = 30, graph: str = "[fw 0/0]") -> Lowered:
    """Return a call of a random program: with inputs that it releases, and calls that take something."""
    run = _Run(seed)
    for i in range(3):
        run.inputs.append(Allocation(f"arg{i}", 32, 0, "", 0, is_input=True))
    workspaces = []
    for position in range(positions):
        run.levels.append(Level(position + 10, f"line {position}", run.level, run.level, run.moment))
        for _ in range(run.random.randrange(4)):
            run.random.choice(
                (run.take, run.take, lambda: run.release(run.found), lambda: run.release(run.inputs))
            )()
        for i in range(max(0, run.random.randrange(5) - 2)):
            nbytes = run.random.choice((16, 16, 5000))
            workspaces.append(
                Workspace(f"aten::sort{i}", nbytes, position, position + 10, "sort()", "model.py:9")
            )
    # Less than is released, where some of that was held before the whole call.
    before = sum(one.nbytes for one in run.inputs if one.freed is not None) + run.random.choice(
        (0, 40, -40, -500)
    )
    taken = Taken(tuple(run.found), tuple(run.inputs), tuple(run.levels))
    gaps = (Gap(3, 13, "line 3", 24, "aten::sort"),)
    return Lowered(graph, taken, "", before, tuple(workspaces), gaps)


def call(*programs: Lowered, pass_name: str = "exact") -> Side:
    """Return a call that made the calls of some programs."""
    memory = Memory(max((one.peak for one in programs), default=0), programs)
    return Side(pass_name, memory, tuple(drawn(one) for one in programs))


def unknown(graph: str = "[bw 0/0]") -> Lowered:
    """Return a call of which nothing is known."""
    return Lowered(graph, None, "C++ programs are not supported")


def held_at(one: Drawn, position: int) -> int:
    """Return the bytes of the rows that count at a position."""
    return sum(row.nbytes for row in one.rows if position in row.held)
