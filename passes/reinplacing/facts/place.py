"""Where tensors live: classes (one per storage of the functional graph), places, and events on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from ...memory.region import Region, Size, as_size
from ...ops import nested
from ...ops.nested import LISTS
from ...reason import Reason


@dataclasses.dataclass(slots=True, eq=False)
class Storage:
    """One storage of the functional graph: the class of all values that share it.

    Args:
        index: its number, in order of birth.
        node: the node that makes it.
        is_input: whether the caller owns it (placeholder or get_attr).
        shift: bytes from its own coordinates to those of the root it would be written into.
        sealed: why it is never written in place, ``None`` normally: an operator that is not understood
            may alias it.
        seal: the node that sealed it.
        relaid: whether it is expected to be laid out in another way than the graph says: like the operand
            it would live in, or like what it is computed from.
        follows: the relaid storages that a computed one is laid out like.
    """

    index: int
    node: Node
    is_input: bool = False
    shift: Size = 0
    sealed: Reason | None = None
    seal: Node | None = None
    relaid: bool = False
    follows: tuple[Storage, ...] = ()

    def close(self, reason: Reason, node: Node) -> None:
        """Never write this storage in place, because of ``node``."""
        if self.sealed is None:
            self.sealed, self.seal = reason, node

    def __repr__(self) -> str:
        return f"<storage {self.index} of {self.node.name}>"


class Unseen(NamedTuple):
    """Through which view a value is seen that the target may copy: what is written there may be lost.

    Args:
        computed: that view where the buffer is computed, ``None`` where there is none.
        of_input: that view where the buffer is an input's.
    """

    computed: Node | None = None
    of_input: Node | None = None


SEEN = Unseen()


@dataclasses.dataclass(slots=True, unsafe_hash=True)
class Place:
    """A tensor's storage, and its bytes there; never changed, like all events below.

    None of them is declared frozen: every node makes some, and frozen ones take three times as long to make.

    The bytes are given in the coordinates of the root that the storage has with all candidates in place.
    """

    storage: Storage
    region: Region
    value: torch.Tensor


def is_known(place: Place) -> bool:
    """Return whether a place says which bytes its tensor is, and not merely in which storage it lies."""
    return len(place.region.sizes) == place.value.dim()


def reads_alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether the same bytes mean the same values in both tensors."""
    if a is b:
        return True
    dtype = a.dtype
    if dtype != b.dtype or a.is_neg() != b.is_neg():
        return False
    return not dtype.is_complex or a.is_conj() == b.is_conj()


Value = Any  # a Place, None, or a list, tuple or dict of them: the shape of a node's value
_LEAVES = (torch.Tensor, Place)  # a union of types is made anew each time it is asked


def mapped(one: Callable[[Any], Place], value: Any) -> Value:
    """Apply ``one`` to each tensor or place of a nested value; all else becomes ``None``."""
    return nested.mapped(_LEAVES, one, value)


def places(value: Value) -> Iterable[Place]:
    """Return the places of a nested value."""
    if isinstance(value, Place):
        return (value,)
    return nested.inside(Place, value) if value is not None else ()


def collect(values: dict[Node, Value], argument: Any, found: list[tuple[Node, Place]]) -> None:
    """Add the nodes inside an argument to ``found``, each with its places among ``values``.

    Every node is asked, some several times: to take ``nested.nodes`` for it takes a quarter longer.
    """
    if isinstance(argument, Node):
        value = values.get(argument)
        if isinstance(value, Place):  # as most are
            found.append((argument, value))
        else:
            found.extend([(argument, p) for p in places(value)])
    elif isinstance(argument, LISTS):
        for item in argument:
            if item is not None:
                collect(values, item, found)
    elif isinstance(argument, dict):
        for item in argument.values():
            collect(values, item, found)
    elif isinstance(argument, slice):
        collect(values, (argument.start, argument.stop, argument.step), found)


@dataclasses.dataclass(slots=True, eq=False)
class Read:
    """Somebody needs the present value of some bytes.

    Args:
        node: the reader.
        time: when the read is over (``END`` for the caller).
        place: what is read.
        hole: bytes inside ``place`` that are surely not read.
        into: the storage that the bytes are only handed on to, unchanged: they are needed iff somebody
            reads them there; ``None`` when the reader looks at them itself.
        is_exit: whether it is the caller looking at an input after the call.
        in_flight: whether it is a collective that reads until its wait.
    """

    node: Node
    time: float
    place: Place
    hole: Region | None = None
    into: Storage | None = None
    is_exit: bool = False
    in_flight: bool = False


@dataclasses.dataclass(slots=True, unsafe_hash=True)
class Write:
    """A real write of the functional graph: ``copy_`` of a value into an input.

    Args:
        node: the copy_.
        time: its place in the graph.
        place: what is written.
        source: what is copied there.
        is_own: whether element i of the source has the bytes of element i of what is written, in the
            coordinates of one buffer: it is an identity where the two are in one buffer.
    """

    node: Node
    time: int
    place: Place
    source: Place
    is_own: bool


def followed(operands: Iterable[tuple[Node, Place]]) -> tuple[Storage, ...]:
    """Return the storages whose other layout is what lays the result of an operator out anew."""
    return tuple(place.storage for _, place in operands if place.storage.relaid)


def is_same_to_torch(one: Place, two: Place) -> bool:
    """Return whether torch's own kernels accept two tensors of the same elements as operand and result.

    They compare strides, also those of single elements, and these are nobody's promise.
    """
    return one.value is two.value or not any(as_size(n) == 1 for n in one.value.size())
