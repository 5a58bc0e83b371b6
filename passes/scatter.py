"""View scatters: which bytes of ``self`` they write, and the view that writes them in place."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Graph, Node

from . import _torch
from .errors import GraphError
from .place import Place
from .region import Region, Size, as_size
from .schema import argument, schema_of
from .wellformed import at
from .wrapper import number

if TYPE_CHECKING:
    from .model import Model

INDEX_PUT = frozenset({"aten::index_put", "aten::_unsafe_index_put"})
VIEWS = {
    "aten::slice_scatter": torch.ops.aten.slice.Tensor,
    "aten::select_scatter": torch.ops.aten.select.int,
    "aten::diagonal_scatter": torch.ops.aten.diagonal.default,
    "aten::as_strided_scatter": torch.ops.aten.as_strided.default,
}


# Inductor computes these element by element; the others it lowers to a copy of the operand and a store.
COMPUTED = frozenset({"aten::slice_scatter", "aten::select_scatter"})

_ABSOLUTE = (
    torch.ops.aten.as_strided.default,
    torch.ops.prims.as_strided.default,
    torch.ops.aten.as_strided_scatter.default,
)


def view_of(node: Node) -> Any:
    """Return the view operator that a scatter writes through."""
    return VIEWS[schema_of(node.target).name]


def is_expanded(value: torch.Tensor) -> bool:
    """Return whether elements of a tensor are the same by a stride of 0."""
    pairs = zip(map(as_size, value.size()), map(as_size, value.stride()), strict=True)
    return any(n != 1 and s == 0 for n, s in pairs)


def moves(model: Model, operand: Place) -> bool:
    """Return whether a functional scatter begins where its operand does, which a rewrite may move.

    Of an expanded one torch makes a tensor of its own, with all elements.
    """
    return model.addressing.has_names and not is_expanded(operand.value)


def displaced(graph: Graph) -> frozenset[Node]:
    """Return the view scatters that begin where their operands do, and whose fake values say something else.

    Torch's kernels copy the storage as it is; fake tensors come from a decomposition, or from a cache.
    """
    targets = (getattr(torch.ops.aten, name.removeprefix("aten::")).default for name in VIEWS)
    found = (n for t in targets for n in graph.find_nodes(op="call_function", target=t, sort=False))
    return frozenset(filter(_is_displaced, found))


def _is_displaced(node: Node) -> bool:
    operand, result = node.args[0] if node.args else None, node.meta.get("val")
    value = operand.meta.get("val") if isinstance(operand, Node) else None
    if not isinstance(value, torch.Tensor) or not isinstance(result, torch.Tensor) or is_expanded(value):
        return False
    return bool(as_size(value.storage_offset()) != as_size(result.storage_offset()))


def absolute() -> tuple[Any, ...]:
    """Return the targets whose nodes may name bytes by an offset into the storage."""
    return (*_ABSOLUTE, _torch.hop("auto_functionalized_v2"))


def is_absolute(node: Node) -> bool:
    """Return whether a node names bytes by an offset into the storage rather than into its operand."""
    if node.op != "call_function":
        return False
    target = node.target
    if target is _torch.hop("auto_functionalized_v2"):
        return _names_offset(tuple(node.kwargs))
    return target in _ABSOLUTE and argument(node, "storage_offset") is not None


@functools.lru_cache(maxsize=1024)
def _names_offset(keys: tuple[str, ...]) -> bool:
    """Return whether a v2 wrapper with these arguments makes a view by an offset; most have the same ones."""
    return any(str(key).endswith("_storage_offset") for key in keys)


def written(model: Model, node: Node, place: Place) -> Region | None:
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
        GraphError: it reaches other bytes (for symbolic sizes this is not checked).
    """
    if reached.static and whole.static and not model.geometry.contains(whole, reached):
        raise GraphError(
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
        # torch clamps symbolic bounds; the source has the slice's size after clamping.
        source = model.place(argument(node, "src"))
        begin = begin + size if isinstance(begin, int) and begin < 0 else begin
        if source is None or not isinstance(step, int) or len(source.region.sizes) != len(base.sizes):
            return None
        count = source.region.sizes[dim]
        known = model.geometry.at_most
        if not (known(0, begin) and known(begin + count, size + (step - 1))):
            return None
    return base._replace(
        offset=base.offset + begin * base.strides[dim],
        sizes=(*base.sizes[:dim], count, *base.sizes[dim + 1 :]),
        strides=(*base.strides[:dim], base.strides[dim] * step, *base.strides[dim + 1 :]),
    )


def _select(model: Model, node: Node, base: Region) -> Region | None:
    dim = _dim(node, "dim", 0, len(base.sizes))
    index, size = number(argument(node, "index")), base.sizes[dim]
    if isinstance(index, int) and index < 0:
        index = index + size
    if not (model.geometry.at_most(0, index) and model.geometry.at_most(index + 1, size)):
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
