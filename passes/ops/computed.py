"""Operators that a fusing compiler computes where their results are used, and has code of its own for."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from .. import _torch
from .schema import is_operator, schema_of

MASKS = (torch.bool, torch.uint8)


def has_code(op: Any) -> bool:
    """Return whether Inductor has a lowering for an operator that does not call the operator's kernel."""
    return _torch.is_lowered(op) and not _torch.is_fallback(op)


def has_code_of(node: Node) -> bool:
    """Return whether a node calls an operator that ``has_code``."""
    return node.op == "call_function" and is_operator(node.target) and has_code(node.target)


def is_generated(node: Node) -> bool:
    """Return whether Inductor generates code for a node: it ``has_code``, and no number is complex."""
    return has_code_of(node) and not _torch.has_unsupported_type(node)


def needs_memory(op: Any) -> bool:
    """Return whether Inductor puts what an operator is given into memory before."""
    return _torch.takes_memory(op) or not has_code(op)


def is_pointwise(node: Node) -> bool:
    """Return whether Inductor computes each element of a value where it is used."""
    if not has_code_of(node):
        return False
    return torch.Tag.pointwise in node.target.tags or _picks(node)  # type: ignore[union-attr]


def _picks(node: Node) -> bool:
    """Return whether a node picks elements by numbers; by a mask it does not know how many."""
    values = (n.meta.get("val") for n in node.all_input_nodes[1:])
    is_masked = any(isinstance(v, torch.Tensor) and v.dtype in MASKS for v in values)
    return schema_of(node.target).picks and not is_masked


def is_factory(node: Node) -> bool:
    """Return whether an operator makes a value of numbers; of its operands it takes sizes at most."""
    return is_operator(node.target) and schema_of(node.target).is_factory
