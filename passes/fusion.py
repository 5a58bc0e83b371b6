"""Writes that Inductor would fuse with reads of the same bytes, in an order that is wrong.

Inductor fuses a computed value with the write that stores it. From the second write into a buffer on, its
scheduler no longer sees that the value was read from other elements of that buffer (torch 2.13: the read
was renamed to the first write, and weak dependencies are compared by the old name), so elements are read
after they were overwritten. Such a buffer is left functional: then its only write is the final ``copy_``.

What a kernel of its own is given is in memory before it writes, and so is what is computed from the old bytes
and used afterwards: ``realize.py`` sees to it, for the kernels that it knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch.fx import Node

from .candidate import Kind
from .decision import Decision
from .place import Storage
from .region import Region
from .relayout import REGROUPING
from .schema import is_operator, schema_of
from .variant import is_stored_by_inductor


class Mutation(NamedTuple):
    """A write into a buffer.

    Args:
        time: its place in the graph.
        node: what writes.
        written: the bytes.
        is_lowered: whether Inductor's own code stores them.
        is_ready: whether a kernel stores them, before which all is in memory.
    """

    time: float
    node: Node
    written: tuple[Region, ...]
    is_lowered: bool
    is_ready: bool


def hazards(decision: Decision) -> dict[Storage, Node]:
    """Return the buffers whose writes Inductor would misorder, each with the write that shows it."""
    if not decision.model.lowered:
        return {}
    found: dict[Storage, Node] = {}
    stored = {c.node for c in decision.edge.values() if c.writes}
    for root, mutations in _mutations(decision).items():
        for i, mutation in enumerate(sorted(mutations, key=lambda m: m.time)):
            # A kernel of its own is registered before the earlier readers of what it writes are put
            # into memory: one that its other operands were made from is computed again, afterwards.
            # A list is computed and stored in one kernel, without that either.
            may_be_late = i or not mutation.is_lowered or _is_list(mutation.node)
            if may_be_late and not mutation.is_ready and _reads_elsewhere(decision, root, mutation, stored):
                found.setdefault(root, mutation.node)
    return found


def _is_list(node: Node) -> bool:
    return bool(node.args) and isinstance(node.args[0], list | tuple)


def _mutations(decision: Decision) -> dict[Storage, list[Mutation]]:
    found: dict[Storage, list[Mutation]] = {}
    for candidate in decision.edge.values():
        if candidate.writes and candidate.index not in decision.moved:
            root = decision.root(candidate.operand.storage)
            is_lowered = is_stored_by_inductor(candidate)
            is_ready = candidate.kind in (Kind.AUTO_V1, Kind.AUTO_V2, Kind.TRITON)
            mutation = Mutation(candidate.time, candidate.node, candidate.writes, is_lowered, is_ready)
            found.setdefault(root, []).append(mutation)
    for storage, writes in decision.model.writes.items():
        for write in writes:
            if write.node not in decision.erased:
                copy = Mutation(write.time, write.node, (write.place.region,), True, False)
                found.setdefault(storage, []).append(copy)
    return found


def _reads_elsewhere(decision: Decision, root: Storage, mutation: Mutation, stored: set[Node]) -> bool:
    """Return whether what is stored was computed from the bytes that it is written over.

    For a store that Inductor lowers, the same elements, read elementwise, do no harm. Elements are counted
    row by row: values may be regrouped in between. No operator on the way makes fewer elements of more, so
    where as many are stored as were read, each was made of the one in its place.
    """
    model = decision.model
    for reader, elementwise in _computed_from(mutation.node, stored):
        for read in model.reads_by.get(reader, ()):
            if read.is_exit or decision.root(read.place.storage) is not root:
                continue
            for region in mutation.written:
                if model.geometry.overlap(read.place.region, region) is False:
                    continue
                same = elementwise and model.geometry.same_in_order(read.place.region, region)
                if not (mutation.is_lowered and same):
                    return True
    return False


def _computed_from(node: Node, stored: set[Node]) -> Iterator[tuple[Node, bool]]:
    """Yield the nodes that are fused into what ``node`` stores, and whether elementwise all the way.

    Nodes in ``stored`` are written in place: what they made is in memory.
    """
    pending = [(n, True) for n in node.all_input_nodes]
    seen: dict[Node, bool] = {}
    while pending:
        current, elementwise = pending.pop()
        if current in stored or current.op != "call_function" or not is_operator(current.target):
            continue
        schema = schema_of(current.target)
        if not schema.name.startswith(("aten::", "prims::")):
            continue  # a kernel of its own: its result is in memory before the write begins
        pointwise = torch.Tag.pointwise in current.target.tags  # type: ignore[union-attr]
        elementwise = elementwise and (pointwise or schema.name in REGROUPING)
        if current in seen and (elementwise or not seen[current]):
            continue
        seen[current] = elementwise
        pending.extend((n, elementwise) for n in current.all_input_nodes)
    yield from seen.items()
