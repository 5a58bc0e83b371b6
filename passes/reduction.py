"""Operators that make few elements of many in a loop of their own, whose results are in memory.

Inductor unrolls a reduction of few elements, and computes the sum of seven where it is used, as if it were
elementwise (``config.unroll_reductions_threshold``). What else has fewer elements than its operands, a part
that is gathered, padded away, pooled or interpolated, it computes where it is used whatever the sizes are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from . import _torch

_MANY = 64  # where Inductor unrolls no more than it does by default


def is_loop(node: Node) -> bool:
    """Return whether an operator is a reduction of so many elements into each one that it is not unrolled."""
    if torch.Tag.reduction not in node.target.tags:  # type: ignore[union-attr]
        return False
    value: Any = node.meta.get("val")
    results = [v.numel() for v in _tensors(value if isinstance(value, list | tuple) else [value])]
    operands = [v.numel() for v in _tensors(n.meta.get("val") for n in node.all_input_nodes)]
    if not results or not operands or not all(isinstance(n, int) for n in (*results, *operands)):
        return False
    unrolled = int(_torch.inductor_setting("unroll_reductions_threshold") or 0)
    return max(operands) >= max(_MANY, unrolled) * max(results)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [value for value in values if isinstance(value, torch.Tensor)]
