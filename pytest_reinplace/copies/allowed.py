"""Whether lowering adds other copies than expected, or more than allowed, and what is said then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..base import wording
from ..call.failure import uncompiled

if TYPE_CHECKING:
    from ..base.lowering_copy import LoweringCopy
    from ..capture.captured import CapturedGraph

_MOST = 10


class Told(NamedTuple):
    """What is wrong, line by line, and the copies that it is about, told below."""

    problems: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


def unknown(graphs: Sequence[CapturedGraph]) -> str:
    """Return why nothing is known of the copies that lowering adds; empty where it is."""
    if not graphs:
        return uncompiled("so there are no copies to know of")
    if unlowered := [graph for graph in graphs if graph.unlowered]:
        return f"the copies of graph {unlowered[0].id} are not known: {unlowered[0].unlowered}"
    if not any(graph.copies is not None for graph in graphs):
        text = "no graph was lowered, so there are no copies to know of"
        if any(graph.backend == "graph" for graph in graphs):
            return f'{text}: backend graph lowers nothing; mark the test reinplace(backend="inductor")'
        return f"{text}: passes were applied by hand; call what torch.compile(fn) returns"
    return ""


def copies_of(graphs: Iterable[CapturedGraph]) -> list[LoweringCopy]:
    """Return the copies that lowering added, without those that the program means, the largest first."""
    found = [copy for graph in graphs for copy in graph.copies or () if not copy.meant]
    return sorted(found, key=lambda copy: -copy.nbytes)


def difference(graphs: Iterable[CapturedGraph], expected: Iterable[str]) -> Told:
    """Return in how far lowering adds other copies than expected, by their labels, in any order."""
    copies = copies_of(graphs)
    wanted, came = Counter(expected), Counter(copy.label for copy in copies)
    if wanted == came:
        return Told()
    unexpected = came - wanted
    lists = [f"expected {sorted(wanted.elements())}", f"got      {[copy.label for copy in copies]}"]
    problems = [wording.difference(wanted, came, "copy"), *(lists if wanted - came else [])]
    return Told(tuple(problems), told(copy for copy in copies if copy.label in unexpected))


def excess(
    graphs: Iterable[CapturedGraph], max_copies: int | None = None, max_copy_bytes: int | None = None
) -> Told:
    """Return in how far lowering adds more copies, or more bytes of them, than allowed."""
    copies, problems = copies_of(graphs), []
    size = sum(copy.nbytes for copy in copies)
    if max_copies is not None and len(copies) > max_copies:
        count = wording.plural(len(copies), "copy")
        problems.append(f"lowering adds {count}; the limit is max_copies={max_copies}")
    if max_copy_bytes is not None and size > max_copy_bytes:
        copied = wording.bytes_of(size)
        problems.append(f"lowering copies {copied}; the limit is max_copy_bytes={max_copy_bytes}")
    return Told(tuple(problems), told(copies) if problems else ())


def told(copies: Iterable[LoweringCopy]) -> tuple[str, ...]:
    """Return what there is to know of copies, line by line, of the first ten."""
    found = list(copies)
    lines = [f"  {line}" for copy in found[:_MOST] for line in copy.lines()]
    left = len(found) - _MOST
    return (*lines, *([f"  and {wording.plural(left, 'more copy')}"] if left > 0 else []))
