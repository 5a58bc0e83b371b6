"""Whether a node computes the same wherever it stands, and what nothing may be moved across."""

from __future__ import annotations

import operator

import torch
from torch.fx import Node

from ..ops.declarations import declaration_of
from ..ops.schema import is_operator, schema_of
from ..ops.wrapper_names import is_wrapper

_SYMBOLIC_MODULES = ("_operator", "math", "builtins", "torch.fx.experimental.symbolic_shapes")
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)

# A result whose size depends on data has ``unbacked_bindings``, or a size that is known all the same.
_FIXED_TAGS = (torch.Tag.nondeterministic_seeded, torch.Tag.data_dependent_output)


def is_movable(node: Node) -> bool:
    """Return whether a node computes the same wherever what it reads is the same."""
    if node.op != "call_function" or node.meta.get("unbacked_bindings"):
        return node.op == "get_attr"
    if not is_operator(node.target):
        return _is_plain(node)
    schema = schema_of(node.target)
    tags = node.target.tags  # type: ignore[union-attr]
    return (
        schema.name.startswith(("aten::", "prims::"))
        and not schema.mutable
        and bool(schema.returns)
        and not any(tag in tags for tag in _FIXED_TAGS)
        and not node.is_impure()
    )


def is_barrier(node: Node) -> bool:
    """Return whether nothing may move across a node: an effect, or what may be one."""
    if node.op in ("placeholder", "get_attr", "output"):
        return False
    if node.op != "call_function":
        return True
    if not is_operator(node.target):
        wrapped = is_wrapper(node.target)
        return not wrapped and not _is_plain(node)
    schema = schema_of(node.target)
    if node.target is torch.ops.aten.copy_.default:
        return False  # held against what is moved across it, storage by storage
    random = torch.Tag.nondeterministic_seeded in node.target.tags  # type: ignore[union-attr]
    declared = declaration_of(node.target)
    if declared is not None and declared.writes:
        return True
    return random or "c10d" in schema.name or not schema.returns or bool(schema.mutable) or node.is_impure()


def _is_plain(node: Node) -> bool:
    """Return whether a node takes an item, or computes a size from sizes."""
    if node.target is operator.getitem:
        return True
    known = getattr(node.target, "__module__", None) in _SYMBOLIC_MODULES
    return known and isinstance(node.meta.get("val"), _NUMBERS)
