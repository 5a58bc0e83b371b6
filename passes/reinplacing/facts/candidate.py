"""Candidates: operands whose results could live in their storage, why some are cloned, and other copies."""

from __future__ import annotations

import dataclasses
from typing import Literal

from torch.fx import Node

from ...memory.region import Region
from ...reason import Reason
from .place import Place, Read, Storage


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Kind:
    """What holds for all candidates of one kind; made in the file of the kind.

    What a kind does not say of itself is the answer that is right for any: less is written in place then.

    Args:
        is_copy: whether it writes nothing: its result is a copy of the operand, and in place nothing is left.
        is_clone: whether the user wrote that copy, which functionalization makes of assignments as well.
        stores_source: whether it stores its only other operand, element i in element i of what it writes.
        hands_on: whether what it does not write of its operand it copies, and never looks at.
        by_form: whether the in-place form of its own operator writes it, which torch runs on no operand that
            lies where it writes.
        of_bases: whether its operand is a base, and what is written are views that the call makes of it.
        clones_early: whether the clone that it writes may be made earlier, where nobody writes in between.
        begins: where that clone may begin: where the graph says, with some room before it if need be, or
            anywhere, since nothing names its bytes.
    """

    is_copy: bool = False
    is_clone: bool = False
    stores_source: bool = False
    hands_on: bool = False
    by_form: bool = False
    of_bases: bool = False
    clones_early: bool = False
    begins: Literal["as told", "padded", "anywhere"] = "as told"


@dataclasses.dataclass(slots=True, eq=False)
class Candidate:
    """One operand of one node whose result could live in that operand's storage; never changed.

    Args:
        index: its number, in graph order.
        kind: what holds for all that are found and written like it.
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


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why a candidate is cloned.

    Args:
        reason: the condition that failed.
        blockers: the nodes that hold it back.
        culprits: accepted candidates of which cutting any one would lift the refusal.
    """

    reason: Reason
    blockers: tuple[Node, ...] = ()
    culprits: frozenset[int] = frozenset()


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
class PartCopy:
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
