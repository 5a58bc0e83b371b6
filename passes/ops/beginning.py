"""Operators that ask where their operand begins, or how it is laid out, and those that hand that on."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from . import views
from .in_place_form import in_place_form
from .schema import is_operator, schema_of

aten: Any = torch.ops.aten


EXACT = 1 << 40  # no distance but 0 is a multiple of it


# What asks where a value begins, or how it is laid out, is told another number where that changes. A copy
# that names bytes by their offset is not moved along. By the identity of the operator: to hash one takes
# torch a microsecond.
ASKING: dict[int, int] = {
    **dict.fromkeys(map(id, (aten.sym_storage_offset.default, aten.storage_offset.default)), EXACT),
    id(aten.as_strided_copy.default): EXACT,
    **dict.fromkeys(map(id, (aten.sym_stride.int, aten.sym_stride.default)), 1),
    **dict.fromkeys(map(id, (aten.stride.int, aten.stride.default)), 1),
}


# Views of another dtype, which need a beginning that their item size divides; by identity, too.
RETYPING = frozenset(
    map(id, (aten.view.dtype, aten.view_as_complex.default, torch.ops.prims.view_of_dtype.default))
)
CANDIDATES = ("aten::index_put", "aten::_unsafe_index_put", "aten::clone", "aten::copy", "aten::_foreach_")


def goes_by_beginning(node: Node) -> bool:
    """Return whether a node names bytes by an offset into the storage, asks for it, or needs a multiple."""
    return views.is_absolute(node) or ASKING.get(id(node.target)) == EXACT or id(node.target) in RETYPING


def asks_for_strides(node: Node) -> bool:
    """Return whether a node's value or numbers depend on its operand's strides, also of dimensions of one."""
    return id(node.target) in RETYPING or ASKING.get(id(node.target)) == 1


def hands_on(target: Any) -> bool:
    """Return whether the value of a target's nodes may lie in an operand's bytes, or begin where it does."""
    if not is_operator(target):
        return True
    schema = schema_of(target)
    if schema.view or schema.view_or_copy or schema.hides_alias or any(r is not None for r in schema.returns):
        return True
    is_candidate = schema.name.startswith(CANDIDATES) or schema.name in views.VIEWS
    return is_candidate or not schema.name.startswith("aten::") or in_place_form(target) is not None
