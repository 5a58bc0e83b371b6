"""Random views of another dtype: pairs of smaller integers, complex numbers and their parts."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from .. import _torch
from .builder import GraphBuilder
from .draws import Draws

aten: Any = torch.ops.aten


def other(builder: GraphBuilder, node: Node) -> Node:
    """View 64-bit integers as pairs of 32-bit ones, or back where the strides allow it; else an alias."""
    value = node.meta["val"]
    wanted = torch.int32 if value.dtype == torch.int64 else torch.int64
    if value.dim() and value.stride(-1) == 1 and value.dtype in (torch.int64, torch.int32):
        fits = [value.storage_offset(), *value.stride()[:-1], value.shape[-1]]
        if wanted == torch.int32 or all(n % 2 == 0 for n in fits):
            return builder.call(aten.view.dtype, node, wanted)
    return builder.call(aten.alias.default, node)


def back(builder: GraphBuilder, base: Node, source: Node) -> Node:
    """View what was made of a base's other-dtype view as the base's dtype again."""
    dtype = base.meta["val"].dtype
    try:
        with _torch.expecting_refusal():
            return builder.call(aten.view.dtype, source, dtype)
    except (RuntimeError, ValueError):  # the source has strides of its own
        dense = builder.call(aten.clone.default, source, memory_format=torch.contiguous_format)
        return builder.call(aten.view.dtype, dense, dtype)


def through_complex(builder: GraphBuilder, draws: Draws, node: Node) -> Node:
    """View 64-bit integers as complex numbers, and these as pairs of parts, which are integers again.

    Nothing is computed with the floating-point values: any bits are good, and stay as they are.
    """
    value = node.meta["val"]
    if value.dtype != torch.int64:
        return builder.call(aten.alias.default, node)
    numbers = builder.call(aten.view.dtype, node, torch.complex64)
    if value.dim() and draws.chance(50):
        numbers = builder.call(aten.slice.Tensor, numbers, 0, draws.below(max(1, value.shape[0])))
    parts = builder.call(aten.view_as_real.default, numbers)
    if draws.chance(35):
        parts = builder.call(aten.select.int, parts, parts.meta["val"].dim() - 1, draws.below(2))
    elif draws.chance(60):
        return builder.call(aten.view.dtype, builder.call(aten.view_as_complex.default, parts), torch.int64)
    return builder.call(aten.view.dtype, parts, torch.int32)
