"""Operators that change nothing where their arguments say so, and may be replaced by their operand."""

from __future__ import annotations

from torch.fx import Node

from .schema import target_name

# Operators that no-op removal may replace by an operand, with the position of that operand.
IDENTITIES = {
    **dict.fromkeys(("aten::clone", "aten::slice", "aten::alias", "aten::repeat", "aten::ceil"), 0),
    **dict.fromkeys(("aten::floor", "aten::round", "aten::trunc", "aten::pow", "aten::constant_pad_nd"), 0),
    **dict.fromkeys(("prims::convert_element_type", "prims::device_put", "aten::view", "aten::cat"), 0),
    **dict.fromkeys(("aten::copy", "aten::slice_scatter"), 1),
}


# Operators that Inductor folds away when their other operand is a constant 0 or 1.
NEUTRAL = frozenset({"aten::add", "aten::sub", "aten::mul", "aten::div"})


def may_vanish(node: Node) -> bool:
    """Return whether Inductor may replace a node, which is no copy, by its operand when it lowers it."""
    name = target_name(node.target)
    return name in IDENTITIES and name not in ("aten::clone", "aten::copy")
