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

Key = tuple[str, int]

# Buffers of a subgraph have names of their own.
_OF_THE_GRAPH = re.compile(r"buf\d+(\[\d+\])*")


def marked(
    allocations: Iterable[Allocation], copies: Iterable[LoweringCopy], clones: Iterable[Outcome]
) -> Mapping[Key, tuple[Kind, str]]:
    """Return the storages that are copies or clones, or hold a copy, each with why.

    A storage is what is put into it first: one that a copy takes over from a value, or is a part of, is that
    value's, and the copy is told.

    Args:
        allocations: what a program takes, in its order; each turn of a loop takes the same again.
        copies: those that lowering adds to its graph.
        clones: the candidates of its graph that are not in place.
    """
    added = {copy.buffer: copy for copy in copies if not copy.meant}
    left = list(clones)
    found: dict[Key, tuple[Kind, str]] = {}
    unnamed: list[Allocation] = []
    distinct = {key_of(one): one for one in allocations}
    for key, one in distinct.items():
        if copy := added.get(_whole(one.name)):
            found[key] = "copy", _copied(copy)
        elif clone := _by_node(one, left):
            found[key] = "clone", _told(clone)
            left.remove(clone)
        elif one.origin.clones:
            unnamed.append(one)
    # What was in a wrapper is a clone and a call now, and the clone has a name that the graph did not know.
    for one in unnamed:
        if clone := _by_size(one, left):
            found[key_of(one)] = "clone", _told(clone)
            left.remove(clone)
    for key, one in distinct.items():
        held = (copy for name in one.later if (copy := added.get(_whole(name))))
        if also := [f"also holds a copy, {_copied(copy)}" for copy in held]:
            kind, why = found.get(key, ("value", ""))
            found[key] = kind, "; ".join([why, *also] if why else also)
    return found


def key_of(one: Allocation) -> Key:
    """Return what a storage is known by: the same for each turn of a loop."""
    return one.name, one.line


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


def _whole(name: str) -> str:
    """Return the name of what a variable or a part of it is: ``"buf1"`` for ``"buf1[0]"``."""
    return name.partition("[")[0]


def _copied(copy: LoweringCopy) -> str:
    return f"{copy.label}: {copy.sentence}"


def _told(clone: Outcome) -> str:
    return f"{clone.label}: {clone.why}" if clone.reason else clone.label
