"""Operators that change nothing where their arguments say so, and may be replaced by their operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import Node

from .schema import schema_of, traits_of


def may_vanish(node: Node) -> bool:
    """Return whether Inductor may replace a node, which is no copy, by its operand when it lowers it."""
    traits = traits_of(node.target)
    return traits.identity is not None and not traits.is_copy


def handed_on(node: Node) -> Node | None:
    """Return the operand that a node equals, element by element, if it is laid out like it.

    Args:
        node: any node. Whether it has its operand's dtype, shape and strides is for the caller to see.
    """
    position = traits_of(node.target).identity
    if position is None or len(node.args) <= position:
        return None
    operand = node.args[position]
    if isinstance(operand, list | tuple) and len(operand) == 1:
        operand = operand[0]
    holds = _ONLY_WHERE.get(schema_of(node.target).name, _always)
    return operand if isinstance(operand, Node) and holds(node) else None


def _always(node: Node) -> bool:
    return True


def _is_whole(node: Node) -> bool:
    """Return whether numbers are rounded that are whole, to no other place than the units."""
    val: Any = node.meta.get("val")
    return len(node.args) == 1 and not node.kwargs and not (val.is_floating_point() or val.is_complex())


def _is_unpinned(node: Node) -> bool:
    """Return whether a copy is not made for the sake of pinned memory."""
    return not (isinstance(node.args[0], Node) and node.args[0].kwargs.get("pin_memory"))


_ONLY_WHERE: dict[str, Callable[[Node], bool]] = {
    **dict.fromkeys(("aten::ceil", "aten::floor", "aten::round", "aten::trunc"), _is_whole),
    "aten::pow": lambda node: type(node.args[1]) is int and node.args[1] == 1,
    "aten::constant_pad_nd": lambda node: all(n.__class__ is int and n == 0 for n in node.args[1]),  # type: ignore[union-attr]
    "aten::copy": _is_unpinned,
}
