"""Copying a small old value for its later readers, so that a large buffer can be written in place.

A candidate that is held back by readers of old bytes can be written after all when what they read is
copied right before it. That is worth it where they read little: one row of a cache, say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING

from torch.fx import Node

from .candidate import Candidate
from .place import Place, Read

if TYPE_CHECKING:
    from .decision import Decision


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of one operand, made right before a candidate's node, for some of its readers.

    Args:
        candidate: the number of the candidate that may be written because of it.
        operand: the node that is copied.
        readers: who reads the copy instead.
        reads: the reads that it serves.
        nbytes: bytes copied.
    """

    candidate: int
    operand: Node
    readers: tuple[Node, ...]
    reads: tuple[Read, ...]
    nbytes: int


def snapshots(decision: Decision, candidate: Candidate, hits: Collection[Read]) -> list[Snapshot] | None:
    """Return copies that serve all readers in ``hits``, ``None`` where one cannot be served."""
    served: dict[Node, list[Read]] = {}
    for read in hits:
        operands = _operands(decision, candidate, read)
        if not operands:
            return None
        for operand in operands:
            served.setdefault(operand, []).append(read)
    model = decision.model
    made = []
    for operand, reads in served.items():
        place = model.place(operand)
        assert place is not None
        readers = tuple(dict.fromkeys(read.node for read in reads))
        size = model.nbytes(place.region.once)
        made.append(Snapshot(candidate.index, operand, readers, tuple(reads), size))
    return made


def _operands(decision: Decision, candidate: Candidate, read: Read) -> list[Node]:
    """Return the operands through which a reader reads, empty where a copy could not stand in for them."""
    model = decision.model
    if read.is_exit or read.in_flight or read.into is not None or _is_rewritten(decision, candidate, read):
        return []
    if any(
        candidate.time < write.time < read.time
        and model.geometry.overlap(write.place.region, read.place.region) is not False
        for write in model.writes.get(read.place.storage, ())
    ):
        return []  # it reads what is written in between, and not the old bytes
    found = [
        n
        for n in read.node.all_input_nodes
        if (place := model.place(n)) is not None and _is_same(place, read.place)
    ]
    if any(model.order[n] >= candidate.time for n in found):
        return []  # a view that is made later
    return found


def _is_same(a: Place, b: Place) -> bool:
    return a.storage is b.storage and a.region == b.region


def _is_rewritten(decision: Decision, candidate: Candidate, read: Read) -> bool:
    """Return whether a reader cannot be given another tensor: it writes there, or shares what it returns."""
    model = decision.model
    if read.node.op == "output":
        leaves = {n for n, place in model.outputs if place.storage is read.place.storage}
        return read.place.storage.is_input or len(leaves) > 1
    if read.node.op != "call_function":
        return True
    root = decision.root(read.place.storage)
    return any(
        decision.root(c.operand.storage) is root
        and model.order[c.operand_node] < candidate.time
        and model.geometry.overlap(c.operand.region, read.place.region) is not False
        for c in model.candidates_of.get(read.node, ())
    )
