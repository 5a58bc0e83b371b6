"""Operators that a fusing compiler computes where their results are used, and has code of its own for."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from .. import _torch
from . import lists
from .schema import is_operator, schema_of

MASKS = (torch.bool, torch.uint8)
# Inductor has code for numbers like these on every device.
_PLAIN = frozenset((torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32))
_PLAIN |= {torch.int16, torch.int8, torch.uint8, torch.bool}


def has_code(op: Any) -> bool:
    """Return whether Inductor has a lowering for an operator that does not call the operator's kernel."""
    return _torch.is_lowered(op) and not _torch.is_fallback(op)


def has_code_of(node: Node) -> bool:
    """Return whether a node calls an operator that ``has_code``."""
    return node.op == "call_function" and is_operator(node.target) and has_code(node.target)


def is_generated(node: Node) -> bool:
    """Return whether Inductor's own code computes a node: no kernel, as for products and complex numbers."""
    if lists.maker(node) is not None:
        return True
    return has_code_of(node) and not schema_of(node.target).calls_kernel and not _has_rare_numbers(node)


def _has_rare_numbers(node: Node) -> bool:
    """Return whether Inductor calls a kernel because of the numbers; to ask it takes 20 microseconds."""
    values = (n.meta.get("val") for n in (node, *node.all_input_nodes))
    is_rare = any(isinstance(v, torch.Tensor) and v.dtype not in _PLAIN for v in values)
    return is_rare and _torch.has_unsupported_type(node)


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
