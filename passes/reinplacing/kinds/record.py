"""How candidates enter the model: one place that keeps the record and the reads of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch.fx import Node

from ...memory.region import Region
from ...reason import Reason
from ..facts import price
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..facts.place import Place, Storage

Labels = tuple[tuple[str, str], ...]
Others = tuple[tuple[str, Node, Place], ...]
Settled = tuple[Storage, Reason | None]  # the result's, and why it can never be its operand's


def others_of(model: Model, args: Iterable[tuple[str, Any]]) -> Others:
    """Return the operands inside arguments, each with its argument's name and its place."""
    return tuple([(name, n, place) for name, value in args for n, place in model.operands(value)])


def read(model: Model, node: Node, args: Iterable[tuple[str, Any]]) -> Others:
    """Note that a node reads all operands inside arguments; returns them as ``others_of`` does."""
    others = others_of(model, args)
    for _, _, place in others:
        model.add_read(node, place)
    return others


def add(
    model: Model,
    kind: Kind,
    node: Node,
    slot: Any,
    labels: Labels,
    operand: Node,
    result: Settled,
    writes: tuple[Region, ...],
    others: Others,
    hole: Region | None = None,
    write_only: bool = False,
    *,
    hands_on: bool | None = None,
    until: float | None = None,
    allocates: bool = False,
    used: tuple[Place, ...] = (),
) -> None:
    """Record one candidate, and the reads it makes whatever is decided.

    What is only written is not read, and the bytes around it are only handed on, as are those that a call
    ``hands_on``; by default its kind says whether it does. A collective is busy ``until`` its wait.
    """
    place = model.place(operand)
    assert place is not None
    (storage, obstacle), size = result, price.of_region(model, place.region)
    hole, write_only = _hole(model, place, hole, write_only)
    is_whole = write_only and hole is None
    if not is_whole:
        # Only a result that could take its operand's place has coordinates to look for its bytes in.
        is_handed = obstacle is None and (write_only or (kind.hands_on if hands_on is None else hands_on))
        is_busy = until not in (None, model.order[node])
        model.add_read(node, place, until, hole, storage if is_handed else None, in_flight=is_busy)
    copied, fresh = price.of_clone(size, write_only=is_whole, allocates=allocates)
    candidate = Candidate(
        *(len(model.candidates), kind, node, model.order[node], slot, labels),
        *(operand, place, storage, writes, others),
        nbytes=copied,
        fresh=fresh,
        write_only=is_whole,
        allocates=allocates,
        used=used,
        obstacle=obstacle,
    )
    model.add(candidate)


def _hole(model: Model, place: Place, hole: Region | None, write_only: bool) -> tuple[Region | None, bool]:
    """Return a hole if elements beside it are other bytes, and whether the operand is only written then."""
    is_folded = hole is not None and model.geometry.self_overlapping(place.region)
    return (None, False) if is_folded else (hole, write_only)


def own_operand(model: Model, node: Node) -> tuple[Any, Place | None]:
    """Return the first argument of a node, and where it lives."""
    operand = node.args[0] if node.args else None
    return operand, model.place(operand)
