"""What a generated program takes, as plain data."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """Where a buffer comes from.

    Args:
        nodes: the nodes of the graph that are computed into it, in their order.
        source: the user's line of the last of them, ``"file:line"``; empty where it is not known.
        clones: whether one of them calls ``aten::clone``.
    """

    nodes: tuple[str, ...] = ()
    source: str = ""
    clones: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Allocation:
    """A block of memory that a program takes, or is given.

    A *position* is the number of a line of the program in the order in which lines run, from 0; each turn of
    a loop runs its lines again.

    Args:
        name: the variable that holds it first.
        nbytes: the bytes of its storage.
        line: the line of the program that takes it, from 1; 0 for an input.
        text: that line.
        born: the position at which it is taken.
        freed: the position at which it is released; ``None`` where it outlives the program.
        origin: where it comes from.
        later: the variables that hold the same storage later, by reuse or as a view.
        is_input: whether the program is given it.
        moments: when it is taken and released among all such events, to tell what is held within one line.
    """

    name: str
    nbytes: int
    line: int
    text: str
    born: int
    freed: int | None = None
    origin: Origin = Origin()
    later: tuple[str, ...] = ()
    is_input: bool = False
    moments: tuple[int, int | None] = (0, None)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {
            "name": self.name,
            "bytes": self.nbytes,
            "line": self.line,
            "text": self.text,
            "born": self.born,
            "freed": self.freed,
            "nodes": list(self.origin.nodes),
            "source": self.origin.source,
            "later": list(self.later),
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Level:
    """The bytes that a program holds while one of its lines runs, above what it was called with.

    Args:
        line: the line, from 1.
        text: it.
        highest: the most that is held while it runs.
        after: what is held when the next line begins.
        moment: when the most is held, as ``Allocation.moments`` counts.
    """

    line: int
    text: str
    highest: int
    after: int
    moment: int


@dataclasses.dataclass(frozen=True, slots=True)
class Need:
    """The least that a program holds at some time, above what it was called with; see :mod:`.bound`.

    Args:
        nbytes: the bytes.
        position: the position of the line that needs them: a call, or the return of the results.
        line: the line, from 1; 0 where nothing is needed.
        text: it.
    """

    nbytes: int = 0
    position: int = 0
    line: int = 0
    text: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {"bytes": self.nbytes, "position": self.position, "line": self.line, "text": self.text}


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """The memory that a program takes above what it is called with.

    Args:
        allocations: all that it takes, in program order.
        inputs: what it is given; those that nobody else holds are released on the way.
        levels: one for each position.
        paths: how many ways through it were gone: 1 where the real call told the conditions.
        all_paths: whether there are no others.
        need: the least that it holds in any order of its lines.
    """

    allocations: tuple[Allocation, ...]
    inputs: tuple[Allocation, ...]
    levels: tuple[Level, ...]
    paths: int = 1
    all_paths: bool = True
    need: Need = Need()

    @property
    def bound(self) -> int:
        """The bytes that it must hold at some time: a lower bound of the peak."""
        return self.need.nbytes

    @property
    def peak(self) -> int:
        """The most bytes that it holds at a time."""
        return max((level.highest for level in self.levels), default=0)

    @property
    def peak_at(self) -> int:
        """The first position at which it holds that."""
        return next((i for i, level in enumerate(self.levels) if level.highest == self.peak), 0)

    def alive(self, position: int) -> tuple[Allocation, ...]:
        """Return what it holds when the line at a position holds most, the largest first."""
        moment = self.levels[position].moment if self.levels else 0
        held = [one for one in self.allocations if _is_held(one, moment)]
        return tuple(sorted(held, key=lambda one: -one.nbytes))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        held = {id(one) for one in self.alive(self.peak_at)}
        allocations = [{**one.to_dict(), "at_peak": id(one) in held} for one in self.allocations]
        return {
            "static_peak": self.peak,
            "static_peak_at": self.peak_at,
            "static_bound": self.need.to_dict(),
            "positions": len(self.levels),
            "paths": self.paths,
            "all_paths": self.all_paths,
            "allocations": allocations,
            "inputs": [one.to_dict() for one in self.inputs],
        }


def _is_held(one: Allocation, moment: int) -> bool:
    born, freed = one.moments
    return born <= moment and (freed is None or moment < freed)
