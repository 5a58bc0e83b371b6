"""Repairs what functionalization and lowering get wrong, while the graph still says what was meant.

``auto_functionalized_v2`` names a mutated slice by ``(dim, start, end)`` of its base, and torch computes
``start`` from the start of the *storage*: for a base that does not start there (an input that is itself a
view) the wrapper writes other elements than the program. Whether the running torch does so is tried out
once; then the numbers are moved back to the base.

With symbolic sizes the wrapper names a view by ``sym_storage_offset`` of it, which Inductor lowers to the
offset of the buffer and not of the view. The offset is written as a product of sizes instead.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from ... import _torch
from ...memory.region import as_size
from ...ops.schema import is_operator, schema_of
from ..defects import defended

aten: Any = torch.ops.aten


def mend(graph: Graph) -> int:
    """Mend a graph in place; returns how many places were mended."""
    slices = _mend_slices(graph) if defended("slices-from-storage") else 0
    return slices + (_mend_offsets(graph) if defended("offset-of-a-view") else 0)


def _mend_offsets(graph: Graph) -> int:
    """Write storage offsets of views in terms of the sizes that the graph is given."""
    nodes = graph.find_nodes(op="call_function", target=aten.sym_storage_offset.default)
    if not nodes:
        return 0
    bound = {
        as_size(n.meta["val"]): n
        for n in graph.find_nodes(op="placeholder")
        if isinstance(n.meta.get("val"), torch.SymInt)
    }
    mended = 0
    for node in nodes:
        expr = as_size(node.meta["val"])
        if not isinstance(expr, int) and not expr.free_symbols <= bound.keys():
            continue
        with graph.inserting_before(node):
            value = _written_out(graph, expr, bound)
        if value is None:
            continue
        _replace(node, value)
        graph.erase_node(node)
        mended += 1
    return mended


def _replace(node: Node, value: Any) -> None:
    """Let all users of a node use a node or a number instead."""

    def swap(n: Node) -> Any:
        return value if n is node else n

    for user in list(node.users):
        user.args, user.kwargs = map_arg((user.args, user.kwargs), swap)


def _written_out(graph: Graph, expr: Any, bound: dict[Any, Node]) -> Any:
    """Return an int or a node for a sum of products of sizes; ``None`` for any other expression."""
    if isinstance(expr, int) or expr.is_Integer:
        return int(expr)
    if expr in bound:
        return bound[expr]
    if not (expr.is_Add or expr.is_Mul or (expr.is_Pow and expr.exp.is_Integer and expr.exp > 0)):
        return None
    target = operator.add if expr.is_Add else operator.mul
    parts = [expr.base] * int(expr.exp) if expr.is_Pow else list(expr.args)
    total = _written_out(graph, parts[0], bound)
    for part in parts[1:]:
        other = _written_out(graph, part, bound)
        if total is None or other is None:
            return None
        total = _symbol(graph, target, (total, other), target(_value(total), _value(other)))
    return total


def _mend_slices(graph: Graph) -> int:
    """Let slices of v2 wrappers count from their base."""
    if not _torch.slices_count_from_storage():
        return 0
    mended = 0
    wrapper = _torch.hop("auto_functionalized_v2")
    for node in graph.find_nodes(op="call_function", target=wrapper):
        if not is_operator(node.args[0]) or node.meta.get("reinplace_mended"):
            continue
        for prefix in _slices(node):
            mended += _mend_one(graph, node, prefix)
        node.meta["reinplace_mended"] = True
    return mended


def _slices(node: Node) -> list[str]:
    names = [f"_{name}" for name in schema_of(node.args[0]).mutable]
    names += [f"{n}_{i}" for n in names for i in range(node.kwargs.get(f"{n}_length") or 0)]  # type: ignore[arg-type]
    return [n for n in names if f"{n}_slice_dim" in node.kwargs]


def _mend_one(graph: Graph, node: Node, prefix: str) -> int:
    bases: Any = node.kwargs["_all_bases"]
    base = bases[node.kwargs[f"{prefix}_base_index"]]
    dim: Any = node.kwargs[f"{prefix}_slice_dim"]
    val: torch.Tensor = base.meta["val"]
    offset, stride = val.storage_offset(), val.stride(dim)
    if as_size(offset) == 0:
        return 0
    moved: Any
    if isinstance(as_size(offset), int) and isinstance(as_size(stride), int):
        moved = int(offset) // int(stride)
    else:
        with graph.inserting_before(node):
            start = _symbol(graph, aten.sym_storage_offset.default, (base,), offset)
            step = as_size(stride)
            if not isinstance(step, int):
                step = _symbol(graph, aten.sym_stride.int, (base, dim), stride)
            moved = _symbol(graph, operator.floordiv, (start, step), offset // stride)
    changes = {}
    for key in (f"{prefix}_slice_start", f"{prefix}_slice_end"):
        old: Any = node.kwargs[key]
        if isinstance(old, Node) or isinstance(moved, Node):
            value = _value(old) - _value(moved)
            with graph.inserting_before(node):
                changes[key] = _symbol(graph, operator.sub, (old, moved), value)
        else:
            changes[key] = old - moved
    node.kwargs = {**node.kwargs, **changes}
    return 1


def _value(number: Any) -> Any:
    return number.meta["val"] if isinstance(number, Node) else number


def _symbol(graph: Graph, target: Any, args: tuple[Any, ...], value: Any) -> Node:
    node = graph.call_function(target, args)
    node.meta["val"] = value
    return node
