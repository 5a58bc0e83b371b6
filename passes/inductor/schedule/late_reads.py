"""Reads that are scheduled before a write although the graph has them after it, or the other way round.

The operations of a schedule are compared with the FX graph that was lowered: each operation knows the nodes
that are computed in it. Where buffers cannot be told of nodes nothing is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from torch.fx import Graph, Node

from ...graph.alias import bases, behind_views, is_view, written
from ...ops import lists
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
    """A write to a buffer.

    Args:
        position: of its operation in the schedule.
        node: the node that writes.
        dep: the elements, of the buffer or of a part that lies in it.
    """

    position: int
    node: Node
    dep: Any


class _Lowered(NamedTuple):
    """A graph that was lowered.

    Args:
        order: the positions of its nodes.
        roots: whose memory each node has.
        homes: in which buffers each root lies.
        made: the buffers that were made for roots.
    """

    order: dict[Node, int]
    roots: dict[Node, Node]
    homes: dict[Node, set[str]]
    made: dict[Node, str]

    def read_from(self, reader: Node, buffer: str) -> list[Node]:
        """Return the values in a buffer that a node reads."""
        read = map(self.roots.__getitem__, reader.all_input_nodes)
        return [root for root in read if buffer in self.homes[root]]

    def is_beside(self, root: Node, write: _Write, home: str, races: Races) -> bool:
        """Return whether a value and what is written are parts of one buffer that share no element."""
        return root in self.made and races.are_apart(self.made[root], write.dep.name, home)

    def is_due(self, reader: Node, root: Node, writer: Node) -> bool:
        """Return whether a node is to read a value as a write has left it.

        A write to another value in the same buffer, what is concatenated or the concatenation, changes the
        value for Inductor, and not in the graph, unless the value was made of it afterwards.
        """
        is_written = any(self.roots[w] is root for w in written(writer))
        return self.order[writer] < self.order[reader if is_written else root]


def late_reads(graph: Graph, nodes: list[Any], races: Races) -> Iterator[LateRead]:
    """Yield the reads of written buffers that are scheduled on the wrong side of a write.

    Args:
        graph: what was lowered.
        nodes: the schedule, in order.
        races: knows the buffers of the schedule.
    """
    order, roots = {node: i for i, node in enumerate(graph.nodes)}, bases(graph)
    lowered = _Lowered(order, roots, *_homes(graph, roots, nodes, races))
    parts = [part for node in nodes for part in _torch.operations(node)]
    writes = _writes(lowered, parts, races)
    yield from _spoiled_outputs(graph, lowered, writes)
    held: dict[str, list[Node]] = defaultdict(list)
    for node, names in lowered.homes.items():
        for name in names:
            held[name].append(node)
    for position, part in enumerate(parts) if writes else ():
        accesses = races.accesses(part)
        # What is written later may be computed again here, of what it was made of.
        in_memory = {node for name in accesses.keys() - writes.keys() for node in held[name]}
        origins = set(_made_of(part, order))
        readers = list(_computed(set(origins), in_memory))
        for name in writes.keys() & accesses.keys():
            reads = [a.dep for a in accesses[name] if not a.is_write]
            read = [(r, root) for r in readers for root in lowered.read_from(r, name)]
            for write in writes[name]:
                if write.position == position:
                    continue
                is_late = write.position < position
                # Who reads what it wrote itself hands it on, but for the elements of a list.
                others = [(r, root) for r, root in read if r is not write.node or lists.is_list(r)]
                wrong = [
                    (r, root) for r, root in others if is_late is not lowered.is_due(r, root, write.node)
                ]
                if len(wrong) < len(others):  # a value that the operation computes itself is not read
                    wrong = [(r, root) for r, root in wrong if root not in origins]
                # Parts of a concatenation lie in it beside each other.
                wrong = [(r, root) for r, root in wrong if not lowered.is_beside(root, write, name, races)]
                if wrong and any(races.meet(dep, write.dep, name) for dep in reads):
                    yield LateRead(name, wrong[0][0], write.node, is_late)


def _spoiled_outputs(graph: Graph, lowered: _Lowered, writes: dict[str, list[_Write]]) -> Iterator[LateRead]:
    """Yield the outputs in whose memory another value is written, a part of a concatenation."""
    output = graph.output_node()
    for root in dict.fromkeys(lowered.roots[n] for n in output.all_input_nodes if n in lowered.roots):
        for name in lowered.homes[root] & writes.keys():
            for write in writes[name]:
                if not lowered.is_due(output, root, write.node):
                    yield LateRead(name, output, write.node, is_late=True)


def _writes(lowered: _Lowered, parts: list[Any], races: Races) -> dict[str, list[_Write]]:
    """Return where which buffers are written after they were made, and by which nodes of the graph."""
    found: dict[str, list[_Write]] = defaultdict(list)
    order, roots, homes, _ = lowered
    for position, part in enumerate(parts):
        for dep in _torch.writes(part):
            buffer = races.buffer(dep.name)
            made_of = _made_of(part, order) if buffer != dep.name else ()
            lies_in = races.lies_in(buffer)
            writers = [n for n in made_of if any(not lies_in.isdisjoint(homes[roots[w]]) for w in written(n))]
            for name in lies_in if writers else ():
                last = max(writers, key=order.__getitem__)
                found[name].append(_Write(position, last, dep))
    return found


def _homes(
    graph: Graph, roots: dict[Node, Node], nodes: list[Any], races: Races
) -> tuple[dict[Node, set[str]], dict[Node, str]]:
    """Return in which buffers each value lies, where that can be told, and which was made for it.

    What is concatenated lies in the concatenation as well.
    """
    found: dict[Node, set[str]] = defaultdict(set)
    made: dict[Node, str] = {}
    for node in graph.find_nodes(op="placeholder"):
        found[node].add(str(node.target))
    for node in nodes:
        for buffer in _torch.outputs(node):
            made_by = _torch.origin(buffer)
            if made_by in roots and not _torch.overwritten(buffer) and not found[roots[made_by]]:
                found[roots[made_by]] |= races.lies_in(_torch.name(buffer))
                made[roots[made_by]] = _torch.name(buffer)
    return found, made


def _made_of(part: Any, order: dict[Node, int]) -> Iterator[Node]:
    """Yield the nodes that an operation computes, or may have been to compute."""
    yield from (n for n in _torch.origins(part) if n in order and n.op == "call_function" and not is_view(n))


def _computed(origins: set[Node], in_memory: set[Node]) -> Iterator[Node]:
    """Yield those of an operation's origins that it computes, and does not read from memory.

    Inductor names as its origins all that it was to compute when it was written down. What was put into
    memory since is read, and what only that is made of is not looked at.
    """
    pending = list(origins.difference(*({*map(behind_views, n.all_input_nodes)} for n in origins)))
    while pending:
        node = pending.pop()
        if node in origins:
            origins.remove(node)
            yield node
            pending += (n for n in map(behind_views, node.all_input_nodes) if n not in in_memory)
