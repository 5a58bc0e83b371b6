"""Where the elements of a value come from: through copies, and through scatters that stored them.

A scatter that stores what its operand holds there anyway is no write at all, wherever the two lie. This is
about values of the functional graph, not about memory: what was decided plays no part in it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Node

from ...memory.region import Region
from ...ops.schema import argument, traits_of
from ..facts.candidate import Candidate
from ..facts.model import Model
from ..facts.place import Place, Storage, reads_alike

aten: Any = torch.ops.aten
_FEW = 16  # elements that are followed one by one
_STEPS = 8  # candidates that each is followed through
Part = tuple[Storage, Region]  # some elements of a value, in their order


def is_held(model: Model, scatter: Node, source: Place, held: Part, until: float = math.inf) -> bool:
    """Return whether a scatter stores what some bytes of a value hold anyway.

    Args:
        model: the model, of what comes before the scatter at least.
        scatter: the scatter.
        source: what it stores, without converting it.
        held: a value's storage, and the bytes in it that the scatter writes.
        until: real writes from this time on do not matter; by default all that are known do.
    """
    given, (storage, written) = source.storage, held
    maker = model.made_by.get(given)
    is_handed = maker is not None and maker.kind.hands_on
    first = _followed(model, (given, source.region))[0] if is_handed else given
    if first is not storage and not _is_composed(model, first, written):
        if all(read.node is scatter for read in model.reads.get(first, ())):
            return False  # nobody else stored it anywhere, which is what most scatters are like
    if _is_same(model, (given, source.region), held, until):
        return True
    item = written.itemsize
    pairs = [
        ((given, _element(a, item)), (storage, _element(b, item)))
        for a, b in written.moves_from(source.region, _FEW) or ()
    ]
    return bool(pairs) and all(_is_same(model, one, two, until) for one, two in pairs)


def _is_composed(model: Model, storage: Storage, written: Region) -> bool:
    """Return whether the elements of a value, few enough to look at each, may come from several places."""
    if written.moves_from(written, _FEW) is None:
        return False
    maker = model.made_by.get(storage)
    return traits_of(storage.node.target).arranges or (maker is not None and maker.kind.stores_source)


def _element(offset: int, item: int) -> Region:
    return Region(offset, (), (), item)


def _is_same(model: Model, one: Part, two: Part, until: float) -> bool:
    one, two = _followed(model, one), _followed(model, two)
    storage = one[0]
    if storage is not two[0] or storage.sealed is not None:
        return False  # it may share storage with an input, or where its views lie is not known
    if any(w.time < until for w in model.writes.get(storage, ())):
        return False  # an input, and one of the two may have been taken from it before, one afterwards
    return model.geometry.same(without_units(one[1]), without_units(two[1]))


def _followed(model: Model, part: Part) -> Part:
    """Return the first place of elements: where they were computed, or an input."""
    for found in itertools.islice(_way(model, part), _STEPS):
        part = found
    return part


def _way(model: Model, part: Part) -> Iterator[Part]:
    while True:
        if part[0].sealed is not None:
            return  # where its views lie is not known
        maker = model.made_by.get(part[0])
        if maker is None:
            before = _arranged(model, part)
        else:
            before = _before(model, maker, part[1]) if maker.obstacle is None else None
        if before is None:
            return
        part = before
        yield part


def _before(model: Model, maker: Candidate, region: Region) -> Part | None:
    """Return where elements of a candidate's result were before it, ``None`` where it computed them."""
    overlap = model.geometry.overlap
    if all(overlap(region, written) is False for written in maker.writes):
        return maker.operand.storage, region
    if not maker.kind.stores_source or not maker.others:
        return None
    source, written = maker.others[0][2], maker.writes[0]
    if not reads_alike(source.value, maker.operand.value):
        return None
    if len(source.region.sizes) == len(written.sizes) and source.region.sizes == written.sizes:
        if model.geometry.self_overlapping(written):
            return None  # which of its elements lies there is not said
        if model.geometry.same(without_units(region), without_units(written)):
            return source.storage, source.region
        if region.sizes == ():
            return _taken(source, written, region)
    return None


def _taken(source: Place, written: Region, element: Region) -> Part | None:
    """Return the element of a scatter's source that was stored as one of its result."""
    for a, b in written.moves_from(source.region, _FEW) or ():
        if b == element.offset and element.itemsize == written.itemsize:
            return source.storage, _element(a, element.itemsize)
    return None


def _arranged(model: Model, part: Part) -> Part | None:
    """Return the element of an operand that an operator put there which only arranges elements anew."""
    element, node = part[1], part[0].node
    place = model.place(node) if traits_of(node.target).arranges else None
    if place is None or element.sizes or not place.region.static:
        return None
    if element.itemsize != place.region.itemsize:
        return None
    index = _index(place.region, element.offset)
    if index is None:
        return None
    rank, sizes = len(index), place.region.sizes
    given: list[Any] = [node.args[0]]
    if node.target is aten.flip.default:
        dims: Any = node.args[1]
        mirrored = {dim % rank for dim in dims}
        index = [n - 1 - i if d in mirrored else i for d, (i, n) in enumerate(zip(index, sizes, strict=True))]
    elif node.target is aten.cat.default:
        operands: Any = node.args[0]
        given = list(operands)
        dim = int(argument(node, "dim") or 0) % rank
    for operand in given:
        source = model.place(operand)
        if source is None or not source.region.static or len(source.region.sizes) != rank:
            return None
        if not reads_alike(source.value, place.value):
            return None  # it is converted
        region = source.region
        if node.target is aten.cat.default and index[dim] >= region.sizes[dim]:
            index[dim] -= region.sizes[dim]
            continue
        offset = region.offset + sum(i * s for i, s in zip(index, region.strides, strict=True))
        return source.storage, _element(offset, region.itemsize)
    return None


def _index(region: Region, offset: int) -> list[int] | None:
    """Return the index of the element of a static region that begins at a byte."""
    index, rest = [0] * len(region.sizes), offset - region.offset
    for i in sorted(range(len(index)), key=lambda i: -region.strides[i]):
        if region.sizes[i] > 1 and region.strides[i] > 0:
            index[i], rest = divmod(rest, region.strides[i])
    inside = all(0 <= i < n for i, n in zip(index, region.sizes, strict=True))
    return index if inside and rest == 0 else None


def without_units(region: Region) -> Region:
    """Return a region without dimensions of one: which elements it has, and their order, stay."""
    axes = [(n, s) for n, s in zip(region.sizes, region.strides, strict=True) if n != 1]
    return region._replace(sizes=tuple(n for n, _ in axes), strides=tuple(s for _, s in axes))
