"""Candidates: operands whose results could live in their storage."""

from __future__ import annotations

import dataclasses
import enum

from torch.fx import Node

from ...memory.region import Region
from ...reason import Reason
from .place import Place, Storage


class Kind(enum.Enum):
    """How a candidate is written in place."""

    AUTO_V1 = enum.auto()
    AUTO_V2 = enum.auto()
    AUTO_OUT = enum.auto()
    TRITON = enum.auto()
    INDEX_PUT = enum.auto()
    SCATTER = enum.auto()
    CLONE = enum.auto()
    IN_PLACE = enum.auto()
    COPY = enum.auto()
    CALL = enum.auto()


@dataclasses.dataclass(slots=True, eq=False)
class Candidate:
    """One operand of one node whose result could live in that operand's storage; never changed.

    Args:
        index: its number, in graph order.
        kind: how it is written in place.
        node: the functional node.
        time: the node's place in the graph.
        slot: which operand: an argument name, ``(name, i)`` of a list, or a base's number (v2).
        labels: ``(op, argument)`` for each argument it stands for; several for a shared v2 base.
        operand_node: the node of the operand.
        operand: where the operand lives.
        result: the storage of the result, ``None`` when nobody uses it.
        writes: the bytes written; empty for a pure copy.
        others: ``(argument, node, place)`` of the other operands that the node reads at the same time.
        nbytes: bytes of the copy when it is cloned (hinted when symbolic), 0 when it is write-only or only
            allocates.
        fresh: bytes of the memory that its functional form needs and copies nothing into.
        write_only: whether the operand is overwritten whole and never read: cloned, it is an empty buffer.
        allocates: whether its functional form copies nothing, and only needs fresh memory.
        used: for an element of a list, what it is computed from beside itself: elements that stay
            functional are computed first, so only those that are in place as well may overwrite it.
        obstacle: why it can never be in place, whatever else is decided; ``None`` normally.
    """

    index: int
    kind: Kind
    node: Node
    time: int
    slot: str | int | tuple[str, int]
    labels: tuple[tuple[str, str], ...]
    operand_node: Node
    operand: Place
    result: Storage
    writes: tuple[Region, ...]
    others: tuple[tuple[str, Node, Place], ...]
    nbytes: int
    fresh: int = 0
    write_only: bool = False
    allocates: bool = False
    used: tuple[Place, ...] = ()
    obstacle: Reason | None = None

    def __str__(self) -> str:
        return " and ".join(f"{op}.{arg}" for op, arg in self.labels)
