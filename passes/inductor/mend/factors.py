"""Sums and differences with a factor that Inductor forgets.

A pattern compares the arguments that it names, and no others: before torch 2.15 ``add(x, a @ b, alpha=2)``
became ``addmm(x, a, b)``. Here it is written as the sum that it is, ``add(x, mul(a @ b, 2))``, which Inductor
computes in the same way, to the last bit.

Before torch 2.13 differences of lists were computed without their factor, sums with it. So
``_foreach_sub(xs, ys, alpha=2)`` is written as ``_foreach_add(xs, ys, alpha=-2)``.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from ...graph.emit import Emitter
from ...graph.sizes import computed
from ..defects import defended

aten: Any = torch.ops.aten


def write_out(graph: Graph) -> int:
    """Write factors that are forgotten in a way in which they are not; returns how many."""
    return _of_products(graph) + _of_lists(graph)


def _of_products(graph: Graph) -> int:
    """Write the factors of sums of matrix products as products; returns how many."""
    found = [node for node in _sums(graph) if _is_of_product(node) and node.kwargs.get("alpha", 1) != 1]
    emitter = Emitter(graph)
    for node in found:
        first, second = node.args
        product = emitter.view(node, aten.mul.Tensor, (second, node.kwargs["alpha"]))
        node.args, node.kwargs = (first, product), {}
    return len(found)


def _sums(graph: Graph) -> list[Node]:
    is_wanted = defended("forgotten-factor")
    return list(graph.find_nodes(op="call_function", target=aten.add.Tensor)) if is_wanted else []


def _is_of_product(node: Node) -> bool:
    """Return whether a sum is of two tensors of its own dtype, of which one is a matrix product."""
    if len(node.args) != 2 or not all(isinstance(n, Node) for n in node.args):
        return False
    values = [n.meta.get("val") for n in node.all_input_nodes]
    is_alike = all(isinstance(v, torch.Tensor) and v.dtype == node.meta["val"].dtype for v in values)
    return is_alike and any(n.target is aten.mm.default for n in node.all_input_nodes)


def _of_lists(graph: Graph) -> int:
    """Write differences of lists with a factor as sums; returns how many."""
    is_wanted = defended("forgotten-factor-of-lists")
    nodes = graph.find_nodes(op="call_function", target=aten._foreach_sub.List) if is_wanted else []
    found = [node for node in nodes if node.kwargs.get("alpha", 1) != 1]
    for node in found:
        alpha: Any = node.kwargs["alpha"]
        other = computed(node, operator.mul, alpha, -1) if isinstance(alpha, Node) else -alpha
        node.target, node.kwargs = aten._foreach_add.List, {"alpha": other}
    return len(found)
