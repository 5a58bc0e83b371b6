"""Copies that a decision makes for others' sake: of old values, and of parts that a call writes."""

from __future__ import annotations

import dataclasses

from torch.fx import Node

from .place import Read


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of one operand, made right before a node that overwrites it, for some of its readers.

    Args:
        candidate: the number of the candidate that may be written because of it.
        before: the node: the candidate's own, or a real write into the buffer that comes later.
        operand: the node that is copied.
        readers: who reads the copy instead.
        reads: the reads that it serves.
        nbytes: bytes copied.
        early: the number of the reader's own candidate, when the reader writes into the copy: then it is
            the clone that the reader would make, made early.
    """

    candidate: int
    before: Node
    operand: Node
    readers: tuple[Node, ...]
    reads: tuple[Read, ...]
    nbytes: int
    early: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A view of a base that a call writes in a copy.

    Args:
        view: its number among the candidate's arguments.
        nbytes: bytes of the copy, 0 where the operator overwrites it unread.
        write_only: whether it does.
        blockers: the other operands of the call that need the old bytes.
    """

    view: int
    nbytes: int
    write_only: bool
    blockers: tuple[Node, ...]
