"""When floating-point results of two graphs may differ, and by how much."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ..graph.copy import all_graphs
from ..ops.schema import is_operator, schema_of, tensors
from .unrepeatable import operator_name

# How far results may be apart, as a part of the largest element: several roundings of each dtype.
_SCALE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 6e-2}
_COARSEST = 0.25


# They move elements and compute nothing.
_MOVES = frozenset(
    (
        *("clone", "copy", "copy_", "slice_scatter", "select_scatter", "diagonal_scatter"),
        *("as_strided_scatter", "index_put", "index_put_", "_unsafe_index_put", "_unsafe_index_put_"),
        *("cat", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "full"),
        *("full_like", "fill", "zeros", "zeros_like", "ones", "ones_like", "zero", "scalar_tensor"),
        *("lift_fresh_copy", "new_zeros", "new_ones", "new_full", "index", "_unsafe_index", "gather"),
        *("index_select", "flip", "roll", "where", "iota", "arange", "constant_pad_nd", "repeat"),
        *("force_stride_order", "_make_token", "_sink_tokens", "reshape", "contiguous", "_assert_scalar"),
        *("_assert_async", "_assert_tensor_metadata", "sym_size", "sym_stride", "sym_numel"),
    )
)


_CONVERSIONS = {"prims::convert_element_type", "aten::_to_copy"}


def arithmetic(gm: GraphModule) -> Counter[str]:
    """Return what a graph and its subgraphs compute: operators by name, without what only moves elements.

    An in-place operator counts as its functional form, and a wrapper as its operator. What torch computes of
    integers alone does not count: it is exact.
    """
    return Counter(name for g in all_graphs(gm) for node in g.graph.nodes if (name := _computed(node)))


def _computed(node: Node) -> str:
    if node.op != "call_function":
        return ""
    name = operator_name(node)
    space, _, bare = name.rpartition("::")
    if name.startswith("higher_order::"):
        return "triton" if "triton_kernel_wrapper" in name else name
    if not space:
        return ""  # numbers of Python, and getitem
    if space in ("aten", "prims", "inductor_prims"):
        bare = bare.removesuffix("_") if not bare.endswith("__") else bare
        if bare in _MOVES or _is_view(node.target) or _is_exact(node):
            return ""
        return f"{space}::{bare}"
    return name


def _is_exact(node: Node) -> bool:
    """Return whether a node makes integers of integers, as far as its fake values say."""
    values = [list(tensors(n.meta.get("val"))) for n in (node, *node.all_input_nodes)]
    return bool(values[0]) and all(map(len, values)) and not any(map(_is_rounded, itertools.chain(*values)))


def _is_rounded(value: torch.Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


def _is_view(target: Any) -> bool:
    if not is_operator(target):
        return False
    schema = schema_of(target)
    return not schema.mutable and any(returned is not None for returned in schema.returns)


def scale(gm: GraphModule) -> float:
    """Return how far results may be apart, as a part of the largest element: the coarsest dtype decides."""
    found = {
        value.dtype
        for graph in all_graphs(gm)
        for node in graph.graph.nodes
        for value in tensors(node.meta.get("val"))
        if _is_rounded(value)
    }
    real = {dtype.to_real() if dtype.is_complex else dtype for dtype in found}
    return max((_SCALE.get(dtype, _COARSEST) for dtype in real), default=0.0)


def only_taken_away(before: GraphModule, after: GraphModule) -> bool:
    """Return whether the second graph computes less than the first, and nothing by another operator.

    That says of what is gone that it changes no bit. A conversion rounds, so it may not be what is gone; one
    that is new stands for arithmetic that only promotes.
    """
    one, two = arithmetic(before), arithmetic(after)
    return not (one - two).keys() & _CONVERSIONS and (two - one).keys() <= _CONVERSIONS


def changed(before: GraphModule, after: GraphModule) -> str:
    """Return what the second graph computes by other operators than the first; empty where by the same."""
    one, two = arithmetic(before), arithmetic(after)
    gone, new = ", ".join(sorted(one - two)), ", ".join(sorted(two - one))
    return f"{gone or 'nothing'} became {new or 'nothing'}" if gone or new else ""
