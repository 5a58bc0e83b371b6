"""Strides of dimensions of one: what fake tensors say of them is a guess where operands have odd ones.

Nothing is addressed by such a stride, so that torch's operators give it as they like, and many another one
than their fake tensors say. They agree where those of all operands are the ones that a contiguous tensor has
(``tests/passes/layout/test_unit_strides.py`` asks all operators that it can call). What asks for strides, as
a view of another dtype does, may notice which one a value has.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.fx import Graph, Node

from ...graph.spread import Names, spread
from ...memory.region import Size, as_size
from ...ops.beginning import asks_for_strides
from ...ops.schema import is_operator, schema_of, tensors


def guessed(graphs: Iterable[Graph]) -> Names:
    """Return the names of the nodes whose strides of dimensions of one are guessed; none if nobody asks.

    Args:
        graphs: a graph and all those that it calls.
    """
    graphs = list(graphs)
    if not any(map(asks_for_strides, {id(n.target): n for graph in graphs for n in graph.nodes}.values())):
        return {}
    return spread(graphs, _is_like)


def _is_like(node: Node, found: set[Node]) -> bool:
    return _has_unit(node) and (not found.isdisjoint(node.all_input_nodes) or _is_guess(node))


def _is_guess(node: Node) -> bool:
    """Return whether an operator is given odd strides, and makes its own of them."""
    if not is_operator(node.target) or schema_of(node.target).view:
        return False
    return any(_is_odd(t) for n in node.all_input_nodes for t in tensors(n.meta.get("val")))


def _has_unit(node: Node) -> bool:
    return any(not all(_is_more(n) for n in t.shape) for t in tensors(node.meta.get("val")))


def _is_odd(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has other strides than a contiguous one, and perhaps a dimension of one."""
    usual: Size = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if as_size(stride) != usual:
            return not all(map(_is_more, tensor.shape))
        usual = usual * as_size(size)
    return False


def _is_more(size: object) -> bool:
    return isinstance(size, int) and size > 1
