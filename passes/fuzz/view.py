"""Random views, and the scatters that write them back."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch.fx import Node

from . import dtype_view, rare_view
from .builder import GraphBuilder
from .draws import Draws

aten: Any = torch.ops.aten


_SCATTER_OF = {
    aten.slice.Tensor: aten.slice_scatter.default,
    aten.select.int: aten.select_scatter.default,
    aten.diagonal.default: aten.diagonal_scatter.default,
    aten.as_strided.default: aten.as_strided_scatter.default,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Scattered:
    """A view of a node that can be written back.

    Args:
        base: the node.
        node: the view.
        target: the view's operator: one that has a scatter, or one that another view undoes.
        args: its arguments after the base.
    """

    base: Node
    node: Node
    target: Any
    args: tuple[Any, ...]

    def back(self, builder: GraphBuilder, source: Node) -> Node:
        """Return the base with ``source`` in place of the view."""
        if self.target in _SCATTER_OF:
            return builder.call(_SCATTER_OF[self.target], self.base, source, *self.args)
        if self.target is aten.permute.default:
            (order,) = self.args
            undone = [order.index(i) for i in range(len(order))]
            return builder.call(aten.permute.default, source, undone)
        if self.target is aten.transpose.int:
            return builder.call(aten.transpose.int, source, *self.args)
        if self.target is aten.view.dtype:
            return dtype_view.back(builder, self.base, source)
        shape = list(self.base.meta["val"].shape)
        try:
            return builder.call(aten.view.default, source, shape)
        except (RuntimeError, ValueError):  # the source has strides of its own
            dense = builder.call(aten.clone.default, source, memory_format=torch.contiguous_format)
            return builder.call(aten.view.default, dense, shape)


def some(builder: GraphBuilder, draws: Draws, node: Node) -> Node:
    """Return a random view of a node, of any kind."""
    rare = rare_view.view(builder, draws, node) if draws.wild else None
    if rare is not None:
        return rare
    value = node.meta["val"]
    kinds = [*_kinds(value), "alias", "dtype", "parts", "expand", "unsqueeze", "unfold", "squeeze"]
    if value.dtype == torch.int64:
        kinds += ["complex", "complex"]
    kind = draws.of(kinds)
    if kind == "squeeze":
        return builder.call(aten.squeeze.default, node)
    if kind == "unfold" and value.dim():
        dim = draws.below(value.dim())
        size = draws.between(min(1, value.shape[dim]), min(3, value.shape[dim]))
        return builder.call(aten.unfold.default, node, dim, size, draws.between(1, 2))
    if kind == "complex":
        return dtype_view.through_complex(builder, draws, node)
    if kind == "alias":
        return builder.call(aten.alias.default, node)
    if kind == "unsqueeze":
        return builder.call(aten.unsqueeze.default, node, draws.below(value.dim() + 1))
    if kind == "expand":
        wide = builder.call(aten.unsqueeze.default, node, 0)
        return builder.call(aten.expand.default, wide, [2, *value.shape])
    if kind == "parts" and value.dim() and value.numel():
        return _part(builder, draws, node).node
    if kind == "dtype":
        return dtype_view.other(builder, node)
    if kind in ("unfold", "parts"):
        return builder.call(aten.alias.default, node)
    target, args = _view(draws, value, kind)
    return builder.call(target, node, *args)


def inside(builder: GraphBuilder, draws: Draws, node: Node) -> Node:
    """Return a random view of a node that has the same dtype and no element twice."""
    target, args = _view(draws, node.meta["val"], draws.of(_kinds(node.meta["val"])))
    return builder.call(target, node, *args)


def scattered(builder: GraphBuilder, draws: Draws, node: Node) -> Scattered:
    """Return a random view of a node that can be written back."""
    value = node.meta["val"]
    more = ["parts", "dtype"] if value.dim() and value.numel() else []
    kind = draws.of([*_kinds(value), *more])
    if kind == "parts":
        return _part(builder, draws, node)
    if kind == "dtype":
        other = dtype_view.other(builder, node)
        if other.target is aten.view.dtype:
            return Scattered(node, other, aten.view.dtype, ())
        kind = "slice"
    target, args = _view(draws, value, kind)
    return Scattered(node, builder.call(target, node, *args), target, args)


def _kinds(value: torch.Tensor) -> list[str]:
    if not value.dim():
        return ["view"]
    kinds = ["slice", "slice"]
    if value.dim() > 1 and value.numel():
        kinds += ["select", "permute", "diagonal", "transpose"]
    if value.is_contiguous() and value.numel():
        kinds += ["view", "as_strided"]
    return kinds


def _view(draws: Draws, value: torch.Tensor, kind: str) -> tuple[Any, tuple[Any, ...]]:
    if kind == "slice":
        return aten.slice.Tensor, _slice(draws, value)
    if kind == "select":
        dim = draws.below(value.dim())
        return aten.select.int, (dim, draws.below(max(1, value.shape[dim])))
    if kind == "diagonal":
        first = draws.below(value.dim() - 1)
        return aten.diagonal.default, (draws.of((0, 1, -1)), first, first + 1)
    if kind == "permute":
        order = list(range(value.dim()))
        dim = draws.below(value.dim() - 1)
        order[dim], order[dim + 1] = order[dim + 1], order[dim]
        return aten.permute.default, (order,)
    if kind == "transpose":
        dim = draws.below(value.dim() - 1)
        return aten.transpose.int, (dim, draws.between(dim + 1, value.dim() - 1))
    if kind == "as_strided":
        return aten.as_strided.default, _as_strided(draws, value)
    return aten.view.default, (_shape(draws, value.numel()),)


def _slice(draws: Draws, value: torch.Tensor) -> tuple[Any, ...]:
    dim = draws.below(value.dim())
    size = value.shape[dim]
    start = draws.between(0, max(0, size - 1))
    end = draws.between(min(start + 1, size), size)
    if draws.chance(25):
        return (dim, draws.of((0, 1)), size, 2)
    if draws.chance(25):
        return (dim, start, (1 << 63) - 1)  # to the end, as Python's open slice is traced
    return (dim, start, end)


def _as_strided(draws: Draws, value: torch.Tensor) -> tuple[Any, ...]:
    """Choose strides that meet no element twice, inside the bytes of a contiguous tensor."""
    count, offset = value.numel(), value.storage_offset()
    if count >= 4 and draws.chance(40):
        cols = draws.between(1, count // 2)
        rows = draws.between(1, count // cols)
        return ([rows, cols], [cols, 1], offset + draws.below(count - rows * cols + 1))
    step = draws.between(1, 2)
    size = draws.between(1, (count - 1) // step + 1)
    start = draws.below(count - (size - 1) * step)
    return ([size], [step], offset + start)


def _shape(draws: Draws, count: int) -> list[int]:
    splits = [[d, count // d] for d in (2, 3, 4) if count > d and count % d == 0]
    return draws.of([[count], *splits])


def _part(builder: GraphBuilder, draws: Draws, node: Node) -> Scattered:
    """Return one of several parts of a node, and how it is written back, as functionalization does."""
    value = node.meta["val"]
    dim = draws.below(value.dim())
    size = value.shape[dim]
    kind = draws.of(("split", "split_sizes", "chunk", "unbind"))
    if kind == "unbind":
        parts = builder.call(aten.unbind.int, node, dim)
        at = draws.below(size)
        return Scattered(node, builder.item(parts, at), aten.select.int, (dim, at))
    if kind == "split_sizes":
        first = draws.below(size + 1)
        sizes = [first, size - first]
        parts = builder.call(aten.split_with_sizes.default, node, sizes, dim)
    elif kind == "chunk":
        parts = builder.call(aten.chunk.default, node, 2, dim)
    else:
        parts = builder.call(aten.split.Tensor, node, max(1, (size + 1) // 2), dim)
    lengths = [part.shape[dim] for part in parts.meta["val"]]
    at = draws.below(len(lengths))
    start = sum(lengths[:at])
    return Scattered(node, builder.item(parts, at), aten.slice.Tensor, (dim, start, start + lengths[at]))
