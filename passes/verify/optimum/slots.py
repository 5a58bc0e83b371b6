"""What could be copied in a functional graph, read from its nodes alone: the oracle's own reading.

Nothing here is shared with the analysis of the pass, so that one cannot hide an error of the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from ... import _torch
from ...ops.declarations import declaration_of
from ...ops.wrapper_names import wraps_operator
from ..laid_out import overlaps_itself
from .forms import form_of, operands

aten: Any = torch.ops.aten


SCATTERS = {
    aten.slice_scatter.default: aten.slice.Tensor,
    aten.select_scatter.default: aten.select.int,
    aten.diagonal_scatter.default: aten.diagonal.default,
    aten.as_strided_scatter.default: aten.as_strided.default,
}
INDEX_PUTS = (aten.index_put.default, aten._unsafe_index_put.default)


def slots(node: Node) -> list[tuple[Any, Node]]:
    """Return ``(slot, operand)`` of each candidate of a node."""
    if node.op != "call_function":
        return []
    if node.target in SCATTERS or node.target in INDEX_PUTS or is_plain_clone(node):
        return [(0, node.args[0])] if isinstance(node.args[0], Node) else []
    if is_reduction(node.target):
        return [(0, node.args[0])] if isinstance(node.args[0], Node) else []
    if form_of(node) is not None:
        return [(i, operand) for i, operand in enumerate(operands(node)) if isinstance(operand, Node)]
    if node.target is _torch.hop("auto_functionalized"):
        return list(_v1_slots(node))
    if node.target is _torch.hop("auto_functionalized_v2"):
        return list(enumerate(node.kwargs["_all_bases"]))  # type: ignore[arg-type]
    if node.target is _torch.hop("triton_kernel_wrapper_functional"):
        given: Any = node.kwargs["kwargs"]
        return [(name, given[name]) for name in node.kwargs["tensors_to_clone"]]  # type: ignore[union-attr]
    return []


def is_reduction(target: Any) -> bool:
    """Return whether a target is a functional collective that copies its input and works on the copy."""
    return str(target).startswith(("_c10d_functional.all_reduce.", "_c10d_functional.broadcast."))


def is_plain_clone(node: Node) -> bool:
    """Return whether a node is a clone with its operand's strides: one with others is a conversion.

    Kernels may rely on the strides they were promised, so a conversion is no copy that a pass may remove.
    """
    if node.target is not aten.clone.default or not isinstance(node.args[0], Node):
        return False
    old, new = node.args[0].meta["val"], node.meta["val"]
    return all(n <= 1 or a == b for n, a, b in zip(new.shape, old.stride(), new.stride(), strict=True))


def _v1_slots(node: Node) -> Iterator[tuple[Any, Node]]:
    for name in mutable(node.args[0]):
        value = node.kwargs.get(name)
        if isinstance(value, Node):
            yield name, value
        elif isinstance(value, list | tuple):
            yield from (((name, i), item) for i, item in enumerate(value) if isinstance(item, Node))


def mutable(op: Any) -> list[str]:
    """Return the names of the arguments that an operator writes."""
    return [a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write]


def read_arguments(node: Node) -> Any:
    """Return the arguments of a candidate's node that it only reads, nested as the node holds them."""
    if not slots(node) or node.target is aten.clone.default or is_reduction(node.target):
        return ()
    if node.target in SCATTERS or node.target in INDEX_PUTS or form_of(node) is not None:
        return node.args[1:]
    if node.target is _torch.hop("triton_kernel_wrapper_functional"):
        given, written = node.kwargs["kwargs"], node.kwargs["tensors_to_clone"]
        return {k: v for k, v in given.items() if k not in written}  # type: ignore[operator, union-attr]
    names = {"_all_bases", *mutable(node.args[0])}
    return {k: v for k, v in node.kwargs.items() if k not in names}


def others(node: Node) -> list[Node]:
    """Return the operands of a candidate's node that it only reads, one for each position."""
    found: list[Node] = []

    def note(n: Node) -> Node:
        found.append(n)
        return n

    map_arg(read_arguments(node), note)
    return found


def copy_bytes(node: Node, slot: Any, operand: torch.Tensor) -> int:
    """Return what it costs not to write a candidate in place.

    That is nothing where all of it is overwritten unread, or computed anew.

    Args:
        node: the candidate's node.
        slot: its slot.
        operand: its operand, real or fake.
    """
    form = form_of(node)
    if form is not None and not form.copies:
        return 0
    only = _write_only(node)
    if not only or overlaps_itself(operand):
        return nbytes(operand)
    if node.target is _torch.hop("auto_functionalized"):
        return 0 if (slot[0] if isinstance(slot, tuple) else slot) in only else nbytes(operand)
    views = [p for p in _prefixes(node) if node.kwargs[f"{p}_base_index"] == slot]
    if len(views) != 1 or not any(views[0].startswith(f"_{name}") for name in only):
        return nbytes(operand)
    return 0 if _view_numel(node, views[0], operand) == operand.numel() else nbytes(operand)


def parts(node: Node, base: int, operand: torch.Tensor) -> Iterator[tuple[str, int]]:
    """Yield the views of a v2 wrapper's base that its operator could write in copies, put back after it.

    Args:
        node: a node.
        base: the base's number.
        operand: the base, real or fake.

    Yields:
        What the names of the view's arguments begin with, and the bytes of the copy.
    """
    if node.target is not _torch.hop("auto_functionalized_v2"):
        return
    for prefix in (p for p in _prefixes(node) if node.kwargs[f"{p}_base_index"] == base):
        count, only = _view_numel(node, prefix, operand), _write_only(node)
        if count < operand.numel():
            yield prefix, 0 if prefix.removeprefix("_") in only else count * operand.element_size()


def _write_only(node: Node) -> tuple[str, ...]:
    found = declaration_of(node.args[0]) if wraps_operator(node.target) else None
    return found.write_only if found is not None else ()


def _prefixes(node: Node) -> list[str]:
    ends = "_base_index"
    return [k.removesuffix(ends) for k in node.kwargs if k.endswith(ends)]


def _view_numel(node: Node, prefix: str, base: torch.Tensor) -> int:
    """Return how many elements the view of a base has that a v2 wrapper describes."""
    kwargs: Any = node.kwargs
    if f"{prefix}_size" in kwargs:
        return math.prod(kwargs[f"{prefix}_size"])
    if f"{prefix}_slice_dim" in kwargs:
        count = kwargs[f"{prefix}_slice_end"] - kwargs[f"{prefix}_slice_start"]
        return int(base.numel() // base.shape[kwargs[f"{prefix}_slice_dim"]] * count)
    return int(base.numel())


def nbytes(value: Any) -> int:
    """Return the bytes of a tensor's elements."""
    return int(value.numel() * value.element_size())


def result_of(value: Any, node: Node, slot: Any) -> torch.Tensor:
    """Return the result that belongs to a candidate."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, dict):
        return value[slot]  # type: ignore[no-any-return]
    if form_of(node) is not None:
        return value[slot]  # type: ignore[no-any-return]
    if isinstance(slot, int):
        return value[len(value) - len(node.kwargs["_all_bases"]) + slot]  # type: ignore[no-any-return, arg-type]
    name, item = slot if isinstance(slot, tuple) else (slot, None)
    names = mutable(node.args[0])
    whole = value[len(value) - len(names) + names.index(name)]
    return whole if item is None else whole[item]  # type: ignore[no-any-return]
