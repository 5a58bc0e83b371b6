"""A call of a program as bars over its positions, with the bytes that are live at each."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..lowered.allocation import Allocation, Taken
from ..lowered.memory import Lowered, Memory, Workspace
from . import marked
from .row import Kind, Row

if TYPE_CHECKING:
    from ..capture.captured import CapturedGraph


@dataclasses.dataclass(frozen=True, slots=True)
class Drawn:
    """A call of a program.

    Args:
        graph: its graph, ``"[fw 0/0]"``.
        rows: what is held: before it began, what it is given and releases, what it takes, in program order;
            then what calls take for themselves. Empty where nothing is known.
        live: the most bytes that are held at each position.
        after: what is held when it ends.
        aside: by how many bytes that is more than what the measured peak counts: it counts off what was held
            before the whole call and is released in it.
        moments: at which moment of each position that is.
        lines: the line that runs at each position.
        problem: why nothing is known; else empty.
        gaps: what the real call held besides, each with its position.
    """

    graph: str
    rows: tuple[Row, ...] = ()
    live: tuple[int, ...] = ()
    after: int = 0
    aside: int = 0
    moments: tuple[int, ...] = ()
    lines: tuple[str, ...] = ()
    problem: str = ""
    gaps: tuple[tuple[int, str], ...] = ()

    @property
    def peak(self) -> int:
        """The most bytes that are live at a time."""
        return max(self.live, default=0)

    @property
    def peak_at(self) -> int:
        """The first position at which they are."""
        return self.live.index(self.peak) if self.live else 0


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """A call with one pass under test.

    Args:
        pass_name: the pass.
        memory: what the call holds.
        programs: the calls of programs in it, in their order.
    """

    pass_name: str
    memory: Memory
    programs: tuple[Drawn, ...]


def side(pass_name: str, memory: Memory, graphs: Sequence[CapturedGraph]) -> Side:
    """Return a call as it is drawn.

    Args:
        pass_name: the pass under test.
        memory: what the call holds.
        graphs: the graphs that were captured, with the copies that lowering adds to them.
    """
    return Side(pass_name, memory, tuple(drawn(one, graphs) for one in memory.programs))


def drawn(program: Lowered, graphs: Sequence[CapturedGraph] = ()) -> Drawn:
    """Return one call of a program as it is drawn."""
    taken = program.taken
    if taken is None:
        return Drawn(program.graph, problem=program.problem)
    base = _before(program, taken)
    largest = {one.position: one for one in sorted(program.workspaces, key=lambda one: one.nbytes)}
    live = tuple(
        base + level.highest + (largest[i].nbytes if i in largest else 0)
        for i, level in enumerate(taken.levels)
    )
    return Drawn(
        program.graph,
        tuple(_rows(program, taken, graphs, largest)),
        live,
        base + (taken.levels[-1].after if taken.levels else 0),
        base - program.before,
        tuple(level.moment for level in taken.levels),
        tuple(level.text for level in taken.levels),
        gaps=tuple((one.position, _gap(one.nbytes, one.operator)) for one in program.gaps),
    )


def _before(program: Lowered, taken: Taken) -> int:
    """Return what is held when a program begins: what the call has taken, and at least what it releases."""
    return max(program.before, _released(taken))


def _released(taken: Taken) -> int:
    return sum(one.nbytes for one in taken.inputs if one.freed is not None)


def _gap(nbytes: int, operator: str) -> str:
    return f"{nbytes} B not foreseen" + (f", left by {operator}" if operator else "")


def _rows(
    program: Lowered, taken: Taken, graphs: Sequence[CapturedGraph], largest: dict[int, Workspace]
) -> Iterator[Row]:
    moments = [level.moment for level in taken.levels]
    released = [one for one in taken.inputs if one.freed is not None]
    # What is released was held before, too: it has bars of its own.
    if rest := _before(program, taken) - _released(taken):
        yield Row("before", "held before", rest, 0, None, range(len(moments)))
    for one in released:
        yield _row(one, "input", held=_held(one, moments))
    marks = marked.marked(taken.allocations, *marked.of_graph(graphs, program.graph))
    for one in taken.allocations:
        yield _row(one, *marks.get(marked.key_of(one), ("value", "")), held=_held(one, moments))
    for own in program.workspaces:
        yield _inside(own, moments[own.position], counts=own is largest[own.position])


def _row(one: Allocation, kind: Kind, why: str = "", *, held: range) -> Row:
    return Row(
        kind,
        one.name,
        one.nbytes,
        one.born,
        one.freed,
        held,
        one.moments,
        one.later,
        one.origin.nodes,
        one.origin.source,
        one.line,
        one.text,
        why,
    )


def _inside(own: Workspace, moment: int, *, counts: bool) -> Row:
    """Return what a call takes for itself; where its line has several, the one that takes most counts."""
    at = own.position
    return Row(
        "outside",
        f"inside {own.operator}",
        own.nbytes,
        at,
        at,
        range(at, at + counts),
        (moment, moment),
        source=own.source,
        line=own.line,
        text=own.text,
    )


def _held(one: Allocation, moments: Sequence[int]) -> range:
    """Return the positions at whose highest level something is held."""
    born, freed = one.moments
    first = 0 if one.is_input else bisect.bisect_left(moments, born)
    last = len(moments) if freed is None else bisect.bisect_left(moments, freed)
    return range(first, max(first, last))
