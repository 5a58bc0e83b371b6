"""Operators that change nothing where their arguments say so, and may be replaced by their operand."""

from __future__ import annotations

from torch.fx import Node

from .schema import traits_of


def may_vanish(node: Node) -> bool:
    """Return whether Inductor may replace a node, which is no copy, by its operand when it lowers it."""
    traits = traits_of(node.target)
    return traits.identity is not None and not traits.is_copy
