"""Writes that Inductor would fuse with reads of the same bytes, in an order that is wrong.

Inductor fuses a computed value with the write that stores it. From the second write into a buffer on, its
scheduler no longer sees that the value was read from other elements of that buffer (the read was renamed to
the first write, and weak dependencies are compared by the old name), so elements are read after they were
overwritten. Such a buffer is left functional: then its only write is the final ``copy_``.
What else reads it and may be fused with the write is looked for in ``overtaken.py``.

What a kernel of its own is given is in memory before it writes, and so is what is computed from the old bytes
and used afterwards: ``inductor/mend/stored_early.py`` sees to it, for the kernels that it knows.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.fx import Node

from ...memory.region import Region, Size
from ...ops import lists
from ...ops.schema import argument, schema_of
from ...reinplacing.facts.decision import Decision
from ...reinplacing.facts.model import Model
from ...reinplacing.facts.place import Place, Storage
from ..defects import defended
from ..lowering import may_be_fused
from .buffers import Buffer, Buffers
from .overtaken import overtaken
from .writes import Mutation, is_born_by_a_write, mutations


def hazards(decision: Decision, buffers: Buffers) -> dict[Buffer, Node]:
    """Return the buffers whose writes Inductor would misorder, each with the write that shows it."""
    stored = {c.node for c in decision.edge.values() if c.writes}
    mutated = mutations(decision, buffers)
    found: dict[Buffer, Node] = overtaken(decision, mutated) if defended("overtaken-reader") else {}
    if not defended("misordered-store"):
        return found
    for buffer, written in mutated.items():
        root = buffer.root
        first = int(is_born_by_a_write(decision, root))
        for i, mutation in enumerate(written, first):
            # A kernel of its own is registered before the earlier readers of what it writes are put
            # into memory: one that its other operands were made from is computed again, afterwards.
            # A list is computed and stored in one kernel, without that either.
            may_be_late = i or not mutation.is_lowered or lists.is_list(mutation.node)
            if may_be_late and not mutation.is_ready and _reads_elsewhere(decision, root, mutation, stored):
                found.setdefault(buffer, mutation.node)
    return found


def _reads_elsewhere(decision: Decision, root: Storage, mutation: Mutation, stored: set[Node]) -> bool:
    """Return whether what is stored was computed from other bytes of the buffer than those it replaces.

    For a store that Inductor lowers, the same elements, read elementwise, do no harm. Elements are counted
    row by row: values may be regrouped in between. No operator on the way makes fewer elements of more, so
    where as many are stored as were read, each was made of the one in its place.
    """
    model = decision.model
    for region in mutation.written:
        starts = [(node, region if is_own else None) for node, is_own in mutation.sources]
        for reader, own in _computed_from(starts, stored):
            for place in _read_by(model, reader):
                if decision.root(place.storage) is not root:
                    continue
                if model.geometry.overlap(place.region, region) is False:
                    continue
                if own is None or not model.geometry.same_in_order(place.region, own):
                    return True
    return False


def _read_by(model: Model, node: Node) -> list[Place]:
    """Return what is read for a value: for an element of a list what it is made of."""
    if lists.maker(node) is None:
        return [read.place for read in model.reads_by.get(node, ())]
    return [place for n in lists.inputs_of(node) if (place := model.place(n)) is not None]


def _computed_from(
    starts: Iterable[tuple[Node, Region | None]], stored: set[Node]
) -> Iterator[tuple[Node, Region | None]]:
    """Yield the nodes that are fused into what is stored, and where their elements are stored.

    Nodes in ``stored`` are written in place: what they made is in memory.

    Args:
        starts: what is stored, or what it is computed from, with the bytes that its elements are stored in;
            ``None`` where an element's place is chosen otherwise.
        stored: nodes whose results are in memory.

    Returns:
        Pairs of a node and the bytes that its elements are stored in, in order; ``None`` where an element
        may be used for others than the one in its place.
    """
    pending = list(starts)
    seen: dict[Node, Region | None] = {}
    while pending:
        current, own = pending.pop()
        is_element = lists.maker(current) is not None
        if current.target is operator.getitem and not is_element:
            pending.append((current.all_input_nodes[0], own))
            continue
        if current in stored or lists.maker(current) in stored or not may_be_fused(current):
            continue
        own = own if is_element else _before(current, own)
        if current in seen and (seen[current] is None or seen[current] == own):
            continue
        seen[current] = own = own if current not in seen else None
        inputs = lists.inputs_of(current) if is_element else current.all_input_nodes
        pending.extend((n, own) for n in inputs)
    yield from seen.items()


def _before(node: Node, own: Region | None) -> Region | None:
    """Return where the elements of a node's operands are stored, given where its own are."""
    op: Any = node.target
    schema = schema_of(op)
    if own is not None and schema.regroups:
        return _grouped(own, Region.of(node.all_input_nodes[0].meta["val"]).sizes)
    if own is None or torch.Tag.pointwise in op.tags or schema.keeps_order:
        return own
    dims = _order(node, len(own.sizes))
    if dims is None or own.sizes != Region.of(node.meta["val"]).sizes:
        return None
    places = sorted(range(len(dims)), key=dims.__getitem__)
    return own._replace(
        sizes=tuple(own.sizes[i] for i in places), strides=tuple(own.strides[i] for i in places)
    )


def _grouped(own: Region, sizes: tuple[Size, ...]) -> Region:
    """Return the same elements in the same order in other sizes, where they are one interval of bytes."""
    if len(own.in_order) > 1 or not own.static or not all(isinstance(n, int) for n in sizes):
        return own
    strides = [own.itemsize * math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return own._replace(sizes=sizes, strides=tuple(strides))


def _order(node: Node, rank: int) -> list[int] | None:
    """Return which dimension of its operand each dimension of a permuted value is; ``None`` for others."""
    if schema_of(node.target).name != "aten::permute":  # Inductor makes one of every other transposition
        return None
    dims: Any = argument(node, "dims")
    return [d % rank for d in dims] if len(dims) == rank else None
