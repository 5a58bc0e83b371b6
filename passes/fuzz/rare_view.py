"""What models rarely hold: views that hide what they are, and shapes without elements or with one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from .builder import GraphBuilder
from .draws import Draws

aten: Any = torch.ops.aten
SHAPES: tuple[tuple[int, ...], ...] = ((0,), (0, 3), (2, 0, 4), (1,), (1, 4), (4, 1), ())
_USUAL = 4  # choices of a usual view, beside one of each below


def view(builder: GraphBuilder, draws: Draws, node: Node) -> Node | None:
    """Return a rare view of a node, or what may be one; ``None`` for a usual one, or where there is none."""
    number = draws.below(_USUAL + len(_VIEWS)) - _USUAL
    return None if number < 0 else _VIEWS[number](builder, draws, node)


def _unsafe_part(builder: GraphBuilder, draws: Draws, node: Node) -> Node | None:
    """Return a part whose schema says that it is a copy."""
    value = node.meta["val"]
    if not value.dim() or not value.numel():
        return None
    dim = draws.below(value.dim())
    size, half = value.shape[dim], value.shape[dim] // 2
    if draws.chance(50):
        parts = builder.call(aten.unsafe_split.Tensor, node, size - half, dim)
    else:
        parts = builder.call(aten.unsafe_split_with_sizes.default, node, [size - half, half], dim)
    return builder.item(parts, draws.below(len(parts.meta["val"])))


def _transposed(builder: GraphBuilder, draws: Draws, node: Node) -> Node | None:
    return builder.call(aten.einsum.default, "ij->ji", [node]) if node.meta["val"].dim() == 2 else None


def _of_itself(builder: GraphBuilder, draws: Draws, node: Node) -> Node:
    return builder.call(aten.expand_as.default, node, node)


def _viewed_as_itself(builder: GraphBuilder, draws: Draws, node: Node) -> Node | None:
    is_plain = node.meta["val"].is_contiguous()
    return builder.call(aten.view_as.default, node, node) if is_plain else None


def _contiguous(builder: GraphBuilder, draws: Draws, node: Node) -> Node:
    return builder.call(aten.contiguous.default, node)


def _flat(builder: GraphBuilder, draws: Draws, node: Node) -> Node | None:
    count = node.meta["val"].numel()
    return builder.call(aten.reshape.default, node, [count]) if count else None


def _detached(builder: GraphBuilder, draws: Draws, node: Node) -> Node:
    return builder.call(aten.detach.default, node)


def _copied_part(builder: GraphBuilder, draws: Draws, node: Node) -> Node | None:
    """Return a copy whose name is that of a view."""
    value = node.meta["val"]
    if not value.dim() or not value.numel():
        return None
    return builder.call(aten.slice_copy.Tensor, node, 0, 0, max(1, value.shape[0] - 1))


def _turned(builder: GraphBuilder, draws: Draws, node: Node) -> Node | None:
    return builder.call(aten.movedim.int, node, 0, -1) if node.meta["val"].dim() > 1 else None


_VIEWS: tuple[Callable[[GraphBuilder, Draws, Node], Node | None], ...] = (
    *(_unsafe_part, _transposed, _of_itself, _viewed_as_itself, _contiguous),
    *(_flat, _detached, _copied_part, _turned),
)
