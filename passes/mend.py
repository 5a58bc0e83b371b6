"""Repairs what functionalization itself gets wrong, while the graph still says what was meant.

``auto_functionalized_v2`` names a mutated slice by ``(dim, start, end)`` of its base, and torch computes
``start`` from the start of the *storage*: for a base that does not start there (an input that is itself a
view) the wrapper writes other elements than the program. Whether the running torch does so is tried out
once; then the numbers are moved back to the base.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from . import _torch
from .region import as_size
from .schema import is_operator, schema_of

aten = torch.ops.aten


def mend(graph: Graph) -> int:
    """Let slices of v2 wrappers count from their base; returns how many were mended."""
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
