"""View scatters: which bytes of ``self`` they write, and the view that writes them in place."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.fx import Node

from ...errors import OutsideTensorError
from ...graph.alias import begin_of
from ...memory._torch import data_symbols, floor_division
from ...memory.region import Region, Size, as_size
from ...ops import views
from ...ops.schema import argument, schema_of
from ...ops.true_strides import has_usual_strides
from ...ops.views import is_expanded
from ...ops.wording import at
from ...ops.wrapper import number
from ...reason import Reason
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..facts.place import Place, is_known
from ..layout import exchange
from ..write.rewriter import Rewriter
from . import record

_OPEN = (1 << 63) - 1  # where an open slice ends, as Python's is traced

KIND = Kind(stores_source=True, hands_on=True, clones_early=True)


def sees_to(node: Node) -> bool:
    """Return whether a node is a view scatter."""
    return schema_of(node.target).writes_through is not None


def begins_at_operand(model: Model, candidate: Candidate) -> bool:
    """Return whether a scatter, or who uses it, asks where it begins: where its operand does, which may move.

    Of an expanded one torch makes a tensor of its own, with all elements. What begins its storage begins
    there in a computed result as well, so a clone would be a copy for nothing.
    """
    if is_expanded(candidate.operand.value):
        return False
    asked = model.layouts.of(candidate.node)
    if asked.named or views.is_absolute(candidate.node):
        return True
    return bool(asked.viewed) and not _begins_storage(candidate.operand)


def _begins_storage(place: Place) -> bool:
    """Return whether a tensor begins its storage for certain, and lies there row by row as torch says."""
    begins = (place.region.offset, place.value.storage_offset())
    is_first = all(isinstance(n, int) and n == 0 for n in begins)
    return is_first and not place.storage.relaid and has_usual_strides(place.value)


def bytes_written(model: Model, node: Node, place: Place) -> Region | None:
    """Return the bytes that a scatter writes, ``None`` when they are not known (then: all of ``self``)."""
    name = schema_of(node.target).name
    if name == "aten::slice_scatter":
        return _slice(model, node, place.region)
    if name == "aten::select_scatter":
        return _select(model, node, place.region)
    if name == "aten::diagonal_scatter":
        return _diagonal(model, node, place.region)
    return _as_strided(node, place)


def check_reach(model: Model, node: Node, reached: Region, whole: Region) -> None:
    """Check that a node which names bytes by their offset stays inside the tensor that was made there.

    The functional form copies the whole storage of an operand, bytes beside the operand included; a clone
    of the operand has only its own elements.

    Raises:
        OutsideTensorError: it reaches other bytes (for symbolic sizes this is not checked).
    """
    if reached.static and whole.static and not model.geometry.contains(whole, reached):
        raise OutsideTensorError(
            f"expected views inside the tensor they are made from, found {at(node)}, which reaches bytes "
            "beside it; make the view from a tensor that holds them all"
        )


def _dim(node: Node, name: str, default: int, rank: int) -> int:
    given = argument(node, name)
    dim = default if given is None else int(given)
    return dim + rank if dim < 0 else dim


def _slice(model: Model, node: Node, base: Region) -> Region | None:
    dim = _dim(node, "dim", 0, len(base.sizes))
    start, end, step = (argument(node, n) for n in ("start", "end", "step"))
    step = 1 if step is None else number(step)
    size = base.sizes[dim]
    begin: Size = 0 if start is None else number(start)
    finish: Size = size if end is None else number(end)
    if all(isinstance(n, int) for n in (size, begin, finish, step)):
        first, last, _ = slice(begin, finish, step).indices(size)
        begin, count = first, len(range(first, last, step))
    else:
        source = model.place(argument(node, "src"))
        if source is None or not isinstance(step, int) or len(source.region.sizes) != len(base.sizes):
            return None
        known = model.geometry.at_most
        begin, finish = (n + size if known(n + 1, 0) else n for n in (begin, finish))
        finish = size if finish == _OPEN else finish
        if known(0, begin) and known(begin, finish) and known(finish, size):
            count = _count(begin, finish, step)
        else:  # torch clamps the bounds, and the source has as many as it leaves: all, and none is outside
            asked, count = _count(begin, finish, step), source.region.sizes[dim]
            if not (known(0, begin) and (count == asked or known(begin + count, size + (step - 1)))):
                return None
    return base._replace(
        offset=base.offset + begin * base.strides[dim],
        sizes=(*base.sizes[:dim], count, *base.sizes[dim + 1 :]),
        strides=(*base.strides[:dim], base.strides[dim] * step, *base.strides[dim + 1 :]),
    )


def _count(begin: Size, finish: Size, step: int) -> Size:
    """Return how many elements a slice asks for."""
    return as_size(floor_division()(sympy.sympify(finish - begin + step - 1), sympy.Integer(step)))


def _select(model: Model, node: Node, base: Region) -> Region | None:
    dim = _dim(node, "dim", 0, len(base.sizes))
    index, size, known = number(argument(node, "index")), base.sizes[dim], model.geometry.at_most
    index = index + size if known(index + 1, 0) else index
    if not (known(0, index) and known(index + 1, size)):
        return None
    return base._replace(
        offset=base.offset + index * base.strides[dim],
        sizes=(*base.sizes[:dim], *base.sizes[dim + 1 :]),
        strides=(*base.strides[:dim], *base.strides[dim + 1 :]),
    )


def _diagonal(model: Model, node: Node, base: Region) -> Region | None:
    rank = len(base.sizes)
    one, two = _dim(node, "dim1", 0, rank), _dim(node, "dim2", 1, rank)
    shift = argument(node, "offset") or 0
    if not isinstance(shift, int):
        return None
    rows, cols = base.sizes[one] - max(0, -shift), base.sizes[two] - max(0, shift)
    if isinstance(rows, int) and isinstance(cols, int):
        count: Size = max(0, min(rows, cols))
    else:
        known = model.geometry.at_most
        count = rows if known(rows, cols) else cols if known(cols, rows) else None
        if count is None or not known(0, count):
            return None
    start = base.strides[two] * shift if shift >= 0 else base.strides[one] * -shift
    keep = [i for i in range(rank) if i not in (one, two)]
    return base._replace(
        offset=base.offset + (start if count != 0 else 0),
        sizes=(*(base.sizes[i] for i in keep), count),
        strides=(*(base.strides[i] for i in keep), base.strides[one] + base.strides[two]),
    )


def _as_strided(node: Node, place: Place) -> Region:
    offset, base = argument(node, "storage_offset"), place.region
    return Region(
        base.offset if offset is None else number(offset) * base.itemsize + place.storage.shift,
        tuple(map(number, argument(node, "size"))),
        tuple(number(s) * base.itemsize for s in argument(node, "stride")),
        base.itemsize,
    )


def visit(model: Model, node: Node) -> bool:
    """Add the candidate of a view scatter; returns whether it is one."""
    operand, place = record.own_operand(model, node)
    source = argument(node, "src")
    if place is None or not isinstance(source, Node) or not is_known(place):
        return False
    written = bytes_written(model, node, place)
    if written is None and _is_told_by_data(node):
        return False  # the view would have sizes of its own, which nothing in the graph gives
    if views.is_absolute(node) and written is not None:
        check_reach(model, node, written, place.region)
        if not written.static and not model.geometry.contains(place.region, written):
            written = None  # some of the tensor, as far as can be told
    elif written is not None:
        model.geometry.know_part(written, place.region)
    result = model.fresh(node, node.meta["val"])
    settled = exchange.settle(model, operand, node, result)
    if place.storage.relaid and operand not in model.relaid and views.is_absolute(node):
        settled = (settled[0], Reason.LAYOUT)
    model.values[node] = exchange.value(model, node, settled[0], result)
    others = record.read(model, node, [("src", source)])
    label = (schema_of(node.target).name, "self")
    writes = (place.region if written is None else written,)
    record.add(model, KIND, node, 0, (label,), operand, settled, writes, others, written)
    return True


def _is_told_by_data(node: Node) -> bool:
    """Return whether only data tell which part of an operand a scatter writes."""
    values = [n.meta.get("val") for n in node.all_input_nodes]
    return bool(data_symbols([v for v in values if isinstance(v, torch.SymInt)]))


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace a view scatter by a copy into a view of its operand, or of a clone that offsets can name."""
    (candidate,) = candidates
    operand: Any = node.args[0]
    if rewriter.is_in_place(candidate):
        if candidate.index not in rewriter.decision.already_there:
            _write_view(rewriter, node, candidate, operand)
    elif begins_at_operand(rewriter.model, candidate):
        # Views that name bytes by their offset need to know where they are.
        operand = rewriter.cloned(node, candidate, operand, node.meta["val"])
        _write_view(rewriter, node, candidate, operand)
    else:
        return
    rewriter.replace(node, operand)


def _write_view(rewriter: Rewriter, node: Node, candidate: Candidate, operand: Node) -> None:
    source, args = argument(node, "src"), list(node.args[2:])
    kwargs = {k: v for k, v in node.kwargs.items() if k != "src"}
    if views.is_absolute(node):
        moved = rewriter.shift_of(candidate.operand)
        if not rewriter.decision.accepted(candidate):  # into a copy, from where the operand begins
            moved = begin_of(operand) - as_size(candidate.operand.value.storage_offset())
        if moved != 0:
            args = [argument(node, name) for name in ("size", "stride", "storage_offset")]
            args, kwargs = [*args[:2], rewriter.emitter.shifted_offset(node, args[0], args[2], moved)], {}
    view = rewriter.emitter.view(node, schema_of(node.target).writes_through, (operand, *args), kwargs)
    rewriter.emitter.store(node, view, source)
