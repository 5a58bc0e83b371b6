"""Which storages of a program are copies that lowering adds, and which are clones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..base.lowering_copy import LoweringCopy
from ..lowered.allocation import Allocation
from .row import Kind

if TYPE_CHECKING:
    from ..capture.captured import CapturedGraph
    from ..passes import Outcome

# Buffers of a subgraph have names of their own.
_OF_THE_GRAPH = re.compile(r"buf\d+(\[\d+\])*")


def marked(
    allocations: Iterable[Allocation], copies: Iterable[LoweringCopy], clones: Iterable[Outcome]
) -> Mapping[int, tuple[Kind, str]]:
    """Return the storages that are copies or clones, by their number, each with what it is made for.

    A storage is what is put into it first: one that a copy takes over from a value is that value's.

    Args:
        allocations: what a program takes, in its order.
        copies: those that lowering adds to its graph.
        clones: the candidates of its graph that are not in place.
    """
    added = {copy.buffer: copy for copy in copies if not copy.meant}
    left = list(clones)
    found: dict[int, tuple[Kind, str]] = {}
    unnamed: list[tuple[int, Allocation]] = []
    for i, one in enumerate(allocations):
        if copy := added.get(one.name.partition("[")[0]):
            found[i] = "copy", f"{copy.label}: {copy.sentence}"
        elif clone := _by_node(one, left):
            found[i] = "clone", _told(clone)
            left.remove(clone)
        elif one.origin.clones:
            unnamed.append((i, one))
    # What was in a wrapper is a clone and a call now, and the clone has a name that the graph did not know.
    for i, one in unnamed:
        if clone := _by_size(one, left):
            found[i] = "clone", _told(clone)
            left.remove(clone)
    return found


def of_graph(graphs: Iterable[CapturedGraph], name: str) -> tuple[list[LoweringCopy], list[Outcome]]:
    """Return the copies and the clones of the graph with a name, and of its subgraphs."""
    found = [graph for graph in graphs if graph.id == name]
    copies = [copy for graph in found for copy in graph.copies or ()]
    return copies, [one for graph in found for one in graph.report.outcomes if not one.reinplaced]


def _by_node(one: Allocation, clones: Iterable[Outcome]) -> Outcome | None:
    inner = not _OF_THE_GRAPH.fullmatch(one.name)
    fitting = (c for c in clones if c.node in one.origin.nodes and bool(c.graph) == inner)
    return next(fitting, None)


def _by_size(one: Allocation, clones: Iterable[Outcome]) -> Outcome | None:
    """Return a clone of these bytes: of the same line, or else the first."""
    fitting = [c for c in clones if c.nbytes == one.nbytes]
    same = (c for c in fitting if c.source and c.source == one.origin.source)
    return next(same, next(iter(fitting), None))


def _told(clone: Outcome) -> str:
    return f"{clone.label}: {clone.why}" if clone.reason else clone.label
