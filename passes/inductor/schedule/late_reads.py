"""Reads that are scheduled before a write although the graph has them after it, or the other way round.

The operations of a schedule are compared with the FX graph that was lowered: each operation knows the nodes
that are computed in it. Where buffers cannot be told of nodes nothing is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from torch.fx import Graph, Node

from ...graph.alias import bases, is_view, viewed, written
from ...ops.source import where
from . import _torch
from .races import Races


class LateRead(NamedTuple):
    """A read of a buffer on the wrong side of a write.

    Args:
        buffer: what is read.
        reader: the node that reads it.
        writer: the node that writes it.
        is_late: whether the write comes first, and in the graph last.
    """

    buffer: str
    reader: Node
    writer: Node
    is_late: bool

    def __str__(self) -> str:
        """Name buffer, nodes and lines."""
        when = "after" if self.is_late else "before"
        place = where(self.reader)
        at = f" at {place}" if place else ""
        return f"{self.reader} reads {self.buffer} {when} {self.writer} writes it{at}"


class _Write(NamedTuple):
    position: int
    node: Node
    dep: Any


def late_reads(graph: Graph, nodes: list[Any], races: Races) -> Iterator[LateRead]:
    """Yield the reads of written buffers that are scheduled on the wrong side of a write.

    Args:
        graph: what was lowered.
        nodes: the schedule, in order.
        races: knows the buffers of the schedule.
    """
    order = {node: i for i, node in enumerate(graph.nodes)}
    roots = bases(graph)
    homes = _homes(graph, roots, nodes)
    parts = [part for node in nodes for part in node.get_nodes()]
    writes: dict[str, list[_Write]] = defaultdict(list)
    for position, part in enumerate(parts):
        for dep in part.read_writes.writes:
            buffer = races.buffer(dep.name)
            made_of = _made_of(part, order) if buffer != dep.name else ()
            writers = [n for n in made_of if any(homes.get(roots[w]) == buffer for w in written(n))]
            if writers:
                writes[buffer].append(_Write(position, max(writers, key=order.__getitem__), dep))
    held: dict[str, list[Node]] = defaultdict(list)
    for node, name in homes.items():
        held[name].append(node)
    for position, part in enumerate(parts) if writes else ():
        accesses = races.accesses(part)
        # What is written later may be computed again here, of what it was made of.
        in_memory = {node for name in accesses.keys() - writes.keys() for node in held[name]}
        origins = set(_made_of(part, order))
        readers = list(_computed(set(origins), in_memory))
        for name in writes.keys() & accesses.keys():
            reads = [a.dep for a in accesses[name] if not a.is_write]
            of_it = [r for r in readers if any(homes.get(roots[n]) == name for n in r.all_input_nodes)]
            for write in writes[name]:
                if write.position == position:
                    continue
                is_late = write.position < position
                wrong = [r for r in of_it if is_late is not (order[write.node] < order[r])]
                if len(wrong) < len(of_it):  # a value that the operation computes itself is not read
                    wrong = [r for r in wrong if not any(roots[n] in origins for n in r.all_input_nodes)]
                if wrong and any(races.meet(dep, write.dep) for dep in reads):
                    yield LateRead(name, wrong[0], write.node, is_late)


def _homes(graph: Graph, roots: dict[Node, Node], nodes: list[Any]) -> dict[Node, str]:
    """Return in which buffer each value lies, where that can be told."""
    found = {node: str(node.target) for node in graph.find_nodes(op="placeholder")}
    for node in nodes:
        for buffer in node.get_outputs():
            made_by = _torch.origin(buffer)
            if made_by in roots and not buffer.get_mutations():
                found.setdefault(roots[made_by], buffer.get_name())
    return found


def _made_of(part: Any, order: dict[Node, int]) -> Iterator[Node]:
    """Yield the nodes that an operation computes, or may have been to compute."""
    yield from (n for n in _torch.origins(part) if n in order and n.op == "call_function" and not is_view(n))


def _computed(origins: set[Node], in_memory: set[Node]) -> Iterator[Node]:
    """Yield those of an operation's origins that it computes, and does not read from memory.

    Inductor names as its origins all that it was to compute when it was written down. What was put into
    memory since is read, and what only that is made of is not looked at.
    """
    pending = list(origins.difference(*({*map(_behind_views, n.all_input_nodes)} for n in origins)))
    while pending:
        node = pending.pop()
        if node in origins:
            origins.remove(node)
            yield node
            pending += (n for n in map(_behind_views, node.all_input_nodes) if n not in in_memory)


def _behind_views(node: Node) -> Node:
    while (source := viewed(node)) is not None:
        node = source
    return node
