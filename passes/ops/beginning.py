"""Who asks where a value begins: by offsets that name its bytes, by views of other dtypes, by number."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from . import views
from .in_place_form import in_place_form
from .schema import is_operator, schema_of, tensors
from .traits import overloads

EXACT = 1 << 40  # no distance but 0 is a multiple of it
_WIDEST = 16  # bytes of the largest dtype


# What asks where a value begins, or how it is laid out, is told another number where that changes. A copy
# that names bytes by their offset is not moved along. By the identity of the operator: to hash one takes
# torch a microsecond.
_ASKING: dict[int, int] = {
    **dict.fromkeys(map(id, overloads(lambda traits: traits.asks_offset)), EXACT),
    **dict.fromkeys(map(id, overloads(lambda traits: traits.asks_strides)), 1),
}


# Views of another dtype, which need a beginning that their item size divides; by identity, too.
_RETYPING = frozenset(map(id, overloads(lambda traits: traits.retypes)))


def may_ask(target: Any) -> bool:
    """Return whether a target's nodes may ask something of where a value begins, or of its strides."""
    return id(target) in _ASKING or id(target) in _RETYPING or any(target is t for t in views.absolute())


def named(node: Node) -> int:
    """Return the largest item that a node names by an offset into the storage, in bytes; 0 for none."""
    return _itemsize(node) if views.is_absolute(node) else 0


def asked(node: Node) -> int:
    """Return what a node's operands must begin at a multiple of, in bytes; 0 where it asks for nothing.

    It is 1 where only strides are asked for, and larger than any offset where the offset is.
    """
    return _itemsize(node) if id(node.target) in _RETYPING else _ASKING.get(id(node.target), 0)


def asked_of_strides(node: Node) -> int:
    """Return what all strides of its operands must be multiples of, in bytes, also of dimensions of one.

    It is 1 where a view has smaller items, which takes a last stride of 1, and 0 where nothing is asked.
    """
    if id(node.target) not in _RETYPING:
        return _ASKING.get(id(node.target), 0) and EXACT
    is_narrowed = any(_itemsize(node) < _itemsize(operand) for operand in node.all_input_nodes)
    return _itemsize(node) if is_widened(node) else int(is_narrowed)


def is_widened(node: Node) -> bool:
    """Return whether a node is a view whose items are larger than those of its operand."""
    if id(node.target) not in _RETYPING:
        return False
    return any(_itemsize(node) > _itemsize(operand) for operand in node.all_input_nodes)


def goes_by_beginning(node: Node) -> bool:
    """Return whether a node names bytes by an offset into the storage, asks for it, or needs a multiple."""
    return views.is_absolute(node) or _ASKING.get(id(node.target)) == EXACT or id(node.target) in _RETYPING


def asks_for_strides(node: Node) -> bool:
    """Return whether a node's value or numbers depend on its operand's strides, also of dimensions of one."""
    return id(node.target) in _RETYPING or _ASKING.get(id(node.target)) == 1


def hands_on(target: Any) -> bool:
    """Return whether the value of a target's nodes may come to lie in an operand's bytes, or begins there."""
    if begins_alike(target):
        return True
    schema = schema_of(target)
    is_made = schema.is_copy or schema.name.startswith("aten::_foreach_")
    return is_made or in_place_form(target) is not None


def begins_alike(target: Any) -> bool:
    """Return whether the value of a target's nodes may begin where an operand does, as a graph is written.

    What makes memory begins at its beginning, but for what lays a copy out around its operand.
    """
    if not is_operator(target):
        return True
    schema = schema_of(target)
    if schema.view or schema.view_or_copy or schema.hides_alias or any(r is not None for r in schema.returns):
        return True
    is_laid_around = schema.is_scatter or target is torch.ops.aten.copy.default
    return is_laid_around or not schema.name.startswith("aten::")


def _itemsize(node: Node) -> int:
    return max([t.element_size() for t in tensors(node.meta.get("val"))], default=_WIDEST)
