"""Functional operators with an in-place form, as the oracle knows them: a table, apart from ``variant``."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch.fx import Node

aten: Any = torch.ops.aten


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """The in-place form of a functional operator.

    Args:
        op: the overload that writes its first argument.
        copies: whether the functional operator hands on elements of its first argument, so copies it.
        elementwise: whether another operand may be the very elements that are written.
    """

    op: Any
    copies: bool = True
    elementwise: bool = False


FORMS = {
    aten.index_add.default: Form(aten.index_add_.default),
    aten.index_copy.default: Form(aten.index_copy_.default),
    aten.index_fill.int_Scalar: Form(aten.index_fill_.int_Scalar),
    aten.index_fill.int_Tensor: Form(aten.index_fill_.int_Tensor),
    aten.index_reduce.default: Form(aten.index_reduce_.default),
    aten.scatter.src: Form(aten.scatter_.src),
    aten.scatter.value: Form(aten.scatter_.value),
    aten.scatter_add.default: Form(aten.scatter_add_.default),
    aten.scatter_reduce.two: Form(aten.scatter_reduce_.two),
    aten.masked_scatter.default: Form(aten.masked_scatter_.default),
    aten.put.default: Form(aten.put_.default),
    aten.fill.Scalar: Form(aten.fill_.Scalar, copies=False),
    aten.gcd.default: Form(aten.gcd_.default, copies=False, elementwise=True),
    aten._foreach_add.Scalar: Form(aten._foreach_add_.Scalar, copies=False, elementwise=True),
    aten._foreach_add.List: Form(aten._foreach_add_.List, copies=False, elementwise=True),
    aten._foreach_mul.ScalarList: Form(aten._foreach_mul_.ScalarList, copies=False, elementwise=True),
    aten._foreach_mul.Tensor: Form(aten._foreach_mul_.Tensor, copies=False, elementwise=True),
    aten._foreach_mul.List: Form(aten._foreach_mul_.List, copies=False, elementwise=True),
}


def form_of(node: Node) -> Form | None:
    """Return the in-place form of a call, ``None`` where the table has none."""
    return FORMS.get(node.target) if node.op == "call_function" else None


def operands(node: Node) -> list[Any]:
    """Return what a call of the table could write: one tensor, or each one of a list."""
    first = node.args[0]
    return list(first) if isinstance(first, list | tuple) else [first]
