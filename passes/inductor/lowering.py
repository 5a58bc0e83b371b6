"""What Inductor computes by itself, stores by itself, or calls a kernel for."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from .. import _torch
from ..ops import lists
from ..ops.in_place_form import in_place_form
from ..ops.schema import is_operator, schema_of
from ..reinplacing.facts.candidate import Candidate, Kind

_MANY = 64  # where Inductor unrolls no more than it does by default


# Inductor has lowerings of these that call a kernel, or fill in a template, which no store is fused with that
# does not take its result.
KERNELS = frozenset(
    f"aten::{name}" for name in ("mm", "bmm", "addmm", "baddbmm", "convolution", "_int_mm", "_scaled_mm")
)


# Inductor writes the tensor of chances into its program as if it were a number (torch 2.11 to 2.15).
_MISLOWERED = frozenset({"aten::bernoulli_.Tensor"})


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


def is_computed(node: Node) -> bool:
    """Return whether Inductor computes a node by itself, and calls no kernel."""
    if lists.maker(node) is not None:
        return True
    if node.op != "call_function" or not is_operator(node.target):
        return False
    if schema_of(node.target).name in KERNELS:
        return False
    return _torch.is_lowered(node.target) and not _torch.is_fallback(node.target)


def is_mislowered(form: Any) -> bool:
    """Return whether Inductor cannot compile an in-place form although it has a lowering."""
    return form.name() in _MISLOWERED


def is_stored_by_inductor(candidate: Candidate) -> bool:
    """Return whether Inductor's own code stores the result, and not a kernel that it calls."""
    if candidate.kind in (Kind.SCATTER, Kind.INDEX_PUT):
        return True
    form = in_place_form(candidate.node.target) if candidate.kind is Kind.IN_PLACE else None
    return form is not None and _torch.is_lowered(form) and not _torch.is_fallback(form)
