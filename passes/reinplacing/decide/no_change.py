"""Writes that leave bytes as they are: what they write there lies there already."""

from __future__ import annotations

import bisect

import torch
from torch.fx import Node

from ...memory.region import Region
from ...ops.schema import argument, schema_of, traits_of
from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.place import Place, Read, Storage, reads_alike
from ..kinds import view_scatter
from ..kinds.origin import is_held, without_units

_MANY = 128  # candidates that may have written into a buffer before one
_FEW = 32  # elements, or candidates, that are looked at one by one


def is_moved(decision: Decision, candidate: Candidate) -> bool:
    """Return whether a scatter's source already lies where the scatter would write it."""
    if candidate.node in decision.model.held and not _is_lost(decision, candidate):
        return True
    (_, node, source), *more = candidate.others or ((None, None, None),)
    if node is None or source is None or more:
        return False
    if _is_repeated(decision, candidate, source):
        return True
    if decision.is_served(candidate.node, node):
        return False
    same_buffer = decision.root(source.storage) is decision.root(candidate.operand.storage)
    alike = reads_alike(source.value, candidate.operand.value)
    return same_buffer and alike and decision.model.geometry.same(source.region, candidate.writes[0])


def _is_lost(decision: Decision, candidate: Candidate) -> bool:
    """Return whether what a scatter's operand holds in the written bytes may be overwritten by now.

    The scatter does not read them, so it held back no write but those into what others read of the operand.
    """
    model, root = decision.model, decision.root(candidate.operand.storage)
    written = candidate.writes[0]
    if any(w.time < candidate.time for w in model.writes.get(root, ())):
        return True
    made: set[int] = set()
    storage = candidate.operand.storage
    while storage in decision.edge and len(made) < _FEW:
        made.add(decision.edge[storage].index)  # what it wrote is part of the operand's value
        storage = decision.edge[storage].operand.storage
    born = model.order[root.node]
    first = bisect.bisect_left(model.candidates, born, hi=candidate.index, key=lambda c: c.time)
    if candidate.index - first > _MANY:
        return True
    return any(
        other.index not in made
        and other.result in decision.edge
        and decision.root(other.operand.storage) is root
        and any(decision.meets(w, written) for w in other.writes)
        for other in model.candidates[first : candidate.index]
    )


def _is_repeated(decision: Decision, candidate: Candidate, source: Place) -> bool:
    """Return whether what a scatter would write lies there since a scatter of the same source."""
    model = decision.model
    first = model.made_by.get(candidate.operand.storage)
    if first is None or not first.kind.stores_source or first.obstacle is not None:
        return False  # with an obstacle, the two have no coordinates to compare
    if not first.others:
        return False  # its source is no value that the model knows
    given = first.others[0][2]
    if given.storage is not source.storage or not reads_alike(given.value, source.value):
        return False
    if source.storage.sealed is not None:
        return False  # it may share storage with an input that is written in between
    if not reads_alike(first.operand.value, candidate.operand.value):
        return False  # a source of another dtype is converted to that of the operand
    if any(view_scatter.bytes_written(model, c.node, c.operand) is None for c in (first, candidate)):
        return False
    pairs = ((given.region, source.region), (first.writes[0], candidate.writes[0]))
    if not all(model.geometry.same(without_units(a), without_units(b)) for a, b in pairs):
        return False
    return not _is_overwritten(decision, first, candidate, source)


def _is_overwritten(decision: Decision, first: Candidate, candidate: Candidate, source: Place) -> bool:
    """Return whether a source, or what the first of two scatters made of it, may change before the second.

    The second overwrites these bytes and does not read them, so it held no write in between back.
    """
    model, root = decision.model, decision.root(candidate.operand.storage)
    between = model.candidates[first.index + 1 : candidate.index]
    real = (w for storage in (source.storage, root) for w in model.writes.get(storage, ()))
    if len(between) > _FEW or any(first.time < w.time < candidate.time for w in real):
        return True
    return any(
        c.result in decision.edge
        and decision.root(c.operand.storage) is root
        and any(decision.meets(w, candidate.writes[0]) for w in c.writes)
        for c in between
    )


def is_put_back(decision: Decision, candidate: Candidate, read: Read, written: Region) -> bool:
    """Return whether a scatter writes back, into the bytes that are read, the elements that are there.

    They may be there because another scatter stored them, or because they were copied from there. A source
    may be a view of the same buffer; elements that come to lie where they lay do not change.
    """
    if not candidate.kind.stores_source:
        return _puts_own_slot(decision, candidate, read)
    if len(candidate.others) != 1:
        return False
    _, node, source = candidate.others[0]
    if decision.is_served(candidate.node, node):
        return False  # it is an older value, from elsewhere
    if not reads_alike(source.value, candidate.operand.value):
        return False
    seen = read.place.storage
    until = read.time if seen.is_input else candidate.time
    if is_held(decision.model, candidate.node, source, (seen, written), until):
        return True
    if decision.root(source.storage) is not decision.root(candidate.operand.storage):
        return False
    pairs = written.moves_from(source.region, _FEW)
    if pairs is None:
        return False
    item = written.itemsize
    changed = (Region(to, (), (), item) for from_, to in pairs if from_ != to)
    return not any(decision.meets(read.place.region, element) for element in changed)


def _puts_own_slot(decision: Decision, candidate: Candidate, read: Read) -> bool:
    """Return whether one slot of the buffer is stored into another, and only what it holds is read.

    A slot is an element, or all that one index of a dimension names. Wherever it is put, and be it where it
    is, the slot itself does not change.
    """
    node, root = candidate.node, decision.root(candidate.operand.storage)
    name = traits_of(node.target).stores
    if name is None:
        return False
    own = ((n, p) for given, n, p in candidate.others if given == name and decision.root(p.storage) is root)
    source = next(own, None)
    if source is None or argument(node, "accumulate") or argument(node, "reduce"):
        return False
    if decision.is_served(node, source[0]) or not reads_alike(source[1].value, candidate.operand.value):
        return False
    place = source[1]
    is_element = all(decision.model.geometry.equal(n, 1) for n in place.region.sizes)
    if not is_element and not _is_slot(node, place.region, candidate.operand.region):
        return False
    return decision.model.geometry.contains(place.region, read.place.region)


def is_put_over(decision: Decision, candidate: Candidate, read: Read) -> bool:
    """Return whether an ``index_put`` changes what is only read by one that overwrites the same elements.

    Which elements these are nobody knows, but both name them by the same indices.
    """
    model = decision.model
    if not traits_of(candidate.node.target).is_index_put or not traits_of(read.node.target).is_index_put:
        return False
    other = next(iter(model.candidates_of.get(read.node, ())), None)
    if other is None or other.index > candidate.index + _FEW:
        return False
    if argument(other.node, "accumulate"):
        return False
    if any(place.storage is read.place.storage for _, _, place in other.others):
        return False  # it reads them as what it stores, too, or as its indices
    if list(argument(candidate.node, "indices")) != list(argument(other.node, "indices")):
        return False
    given = (place.storage for name, _, place in other.others if name == "indices")
    if any(candidate.time < w.time < other.time for storage in given for w in model.writes.get(storage, ())):
        return False
    return model.same_value(candidate.operand, other.operand)


def _is_slot(node: Node, source: Region, whole: Region) -> bool:
    """Return whether a source is what one index of a dimension names, of a call that stores one index."""
    dim = _one_index(node)
    if dim is None or not (source.static and whole.static):
        return False
    size, stride = whole.sizes[dim], whole.strides[dim]
    at = dim % len(whole.sizes)
    sizes, strides = (v[:at] + v[at + 1 :] for v in (whole.sizes, whole.strides))
    slot = Region(source.offset, sizes, strides, whole.itemsize)
    moved = source.offset - whole.offset
    inside = stride != 0 and moved % stride == 0 and 0 <= moved // stride < size
    return inside and without_units(source) == without_units(slot)


def _one_index(node: Node) -> int | None:
    """Return the dimension of which a call is given one single index, ``None`` where it is not so."""
    name = schema_of(node.target).name
    if name == "aten::index_copy":
        dim, index = argument(node, "dim"), argument(node, "index")
    elif name == "aten::index_put":
        indices = [(i, index) for i, index in enumerate(argument(node, "indices")) if index is not None]
        if len(indices) != 1:
            return None
        ((dim, index),) = indices
    else:
        return None
    given = index.meta["val"]
    is_number = given.dtype not in (torch.bool, torch.uint8) and isinstance(given.numel(), int)
    return int(dim) if is_number and given.numel() == 1 else None


def is_unchanged(decision: Decision, value: Storage, seen: Place) -> bool:
    """Return whether ``value`` was made from ``seen`` without changing the bytes that are looked at.

    Writing such a value back over them leaves them as they are.
    """
    model = decision.model
    while value is not seen.storage:
        candidate = model.made_by.get(value)
        if candidate is None or candidate.obstacle is not None:
            return False  # the value has no coordinates to compare in
        kept = [p for _, _, p in candidate.others if p.storage is seen.storage]
        for written in candidate.writes:
            put_back = candidate.kind.stores_source and any(
                reads_alike(p.value, candidate.operand.value) and model.geometry.same(p.region, written)
                for p in kept
            )
            if not put_back and model.geometry.overlap(seen.region, written) is not False:
                return False
        value = candidate.operand.storage
    return True
