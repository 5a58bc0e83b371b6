"""Writes that Inductor would fuse with reads of the same bytes, in an order that is wrong.

Inductor fuses a computed value with the write that stores it. From the second write into a buffer on, its
scheduler no longer sees that the value was read from other elements of that buffer (torch 2.13: the read
was renamed to the first write, and weak dependencies are compared by the old name), so elements are read
after they were overwritten. Such a buffer is left functional: then its only write is the final ``copy_``.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.fx import Node

from .decision import Decision
from .place import Storage
from .region import Region
from .relayout import REGROUPING
from .schema import is_operator, schema_of
from .variant import is_stored_by_inductor

Mutation = tuple[float, Node, tuple[Region, ...], bool]  # time, node, bytes, whether Inductor lowers it


def hazards(decision: Decision) -> dict[Storage, Node]:
    """Return the buffers whose writes Inductor would misorder, each with the write that shows it."""
    if not decision.model.lowered:
        return {}
    found: dict[Storage, Node] = {}
    stored = {c.node for c in decision.edge.values() if c.writes}
    for root, mutations in _mutations(decision).items():
        for i, (_, node, written, is_lowered) in enumerate(sorted(mutations, key=lambda m: m[0])):
            # A kernel of its own is registered before the earlier readers of what it writes are put
            # into memory: one that its other operands were made from is computed again, afterwards.
            # A list is computed and stored in one kernel, without that either.
            if (i or not is_lowered or _is_list(node)) and _reads_elsewhere(
                decision, root, node, written, is_lowered, stored
            ):
                found.setdefault(root, node)
    return found


def _is_list(node: Node) -> bool:
    return bool(node.args) and isinstance(node.args[0], list | tuple)


def _mutations(decision: Decision) -> dict[Storage, list[Mutation]]:
    found: dict[Storage, list[Mutation]] = {}
    for candidate in decision.edge.values():
        if candidate.writes and candidate.index not in decision.moved:
            root = decision.root(candidate.operand.storage)
            is_lowered = is_stored_by_inductor(candidate)
            mutation = (candidate.time, candidate.node, candidate.writes, is_lowered)
            found.setdefault(root, []).append(mutation)
    for storage, writes in decision.model.writes.items():
        for write in writes:
            if write.node not in decision.erased:
                found.setdefault(storage, []).append((write.time, write.node, (write.place.region,), True))
    return found


def _reads_elsewhere(
    decision: Decision,
    root: Storage,
    node: Node,
    written: tuple[Region, ...],
    is_lowered: bool,
    stored: set[Node],
) -> bool:
    """Return whether what ``node`` is given was computed from the bytes it writes.

    For a store that Inductor lowers, the same elements, read elementwise, do no harm. Elements are counted
    row by row: values may be regrouped in between. No operator on the way makes fewer elements of more, so
    where as many are stored as were read, each was made of the one in its place.
    """
    model = decision.model
    for reader, elementwise in _computed_from(node, stored):
        for read in model.reads_by.get(reader, ()):
            if read.is_exit or decision.root(read.place.storage) is not root:
                continue
            for region in written:
                if model.geometry.overlap(read.place.region, region) is False:
                    continue
                same = elementwise and model.geometry.same_in_order(read.place.region, region)
                if not (is_lowered and same):
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
