"""``full(shape, b).scatter(dim, index, v)`` of one index a row is ``where(index == position, v, b)``.

Nothing is filled and written then: each element is computed where it is used. Inductor's rule lets ``where``
choose a dtype for the two numbers, which rounds those of float64 to float32, and no longer tells that an
index is out of bounds. It can be switched off (``optimize_scatter_upon_const_tensor``).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from ..graph.alias import uses, written
from ..graph.journal import erase
from ..memory.region import as_size
from ..ops.schema import argument
from .ground import Ground, dim_of, is_plain
from .held import held
from .rule import Places, Rule

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims


def _rewrite(graph: Graph) -> Places:
    ground = Ground(graph)
    for node in list(graph.find_nodes(op="call_function", target=aten.scatter.value)):
        constant: Any = argument(node, "self")
        if constant.target is not aten.full.default:
            continue
        why = _why_not(ground, node, constant)
        yield node.name, node if why else None, why
        if not why:
            ground.replace(node, _chosen(ground, node, constant))
            erase(graph, [] if constant.users else [constant])


def _why_not(ground: Ground, node: Node, constant: Node) -> str:
    """Return why elements are not chosen by their position, empty where that gives them to the last bit."""
    val: Any = node.meta.get("val")
    index: Any = argument(node, "index")
    at: Any = index.meta.get("val") if isinstance(index, Node) else None
    if not is_plain(val) or not is_plain(at):
        return "the result or the index is no plain tensor"
    numbers = argument(constant, "fill_value"), argument(node, "value")
    if any(held(number, val.dtype) is None for number in numbers):
        return "what is stored is not known as the dtype holds it"
    if any(name in written(user) for user, name in uses(constant)):
        return "the constant is written"
    # Of an index of no dimension there is one, and none to tell positions apart by.
    if val.dim() == 0 or at.dim() != val.dim() or at.dtype != torch.int64:
        return "the index has other dimensions, or another dtype"
    dim = dim_of(node, val.dim())
    if as_size(at.shape[dim]) != 1:  # of several indices each position would be compared with all
        return "not one index a row"
    rest = [d for d in range(val.dim()) if d != dim]
    if not all(ground.geometry.equal(as_size(at.shape[d]), as_size(val.shape[d])) for d in rest):
        return "it may leave rows out"
    # An empty row has no position, and an index into it nothing to be looked up in.
    return "" if ground.geometry.at_most(1, as_size(val.shape[dim])) else "a row may be empty"


def _chosen(ground: Ground, node: Node, constant: Node) -> Node:
    """Insert the choice of each element.

    The index is looked up in the positions: it is what it is there, and out of bounds an error, as before.
    """
    val: torch.Tensor = node.meta["val"]
    emit, rank, dim = ground.emitter.view, val.dim(), dim_of(node, val.dim())
    shape: Any = argument(constant, "size")
    count = {"start": 0, "step": 1, "dtype": torch.int64, "device": val.device, "requires_grad": False}
    row = emit(node, prims.iota.default, (shape[dim],), count)
    row = emit(node, aten.view.default, (row, [shape[dim] if d == dim else 1 for d in range(rank)]))
    rows = emit(node, aten.expand.default, (row, shape)) if rank > 1 else row
    index = emit(node, aten.gather.default, (rows, dim, argument(node, "index")))
    is_stored = emit(node, aten.eq.Tensor, (index, row))
    like = {"dtype": val.dtype, "layout": torch.strided, "device": val.device, "pin_memory": False}
    numbers = (argument(node, "value"), argument(constant, "fill_value"))
    pair = [emit(node, aten.full.default, ([], held(number, val.dtype)), like) for number in numbers]
    chosen = emit(node, aten.where.self, (is_stored, *pair))
    if ground.alike(chosen, node):
        return chosen
    return emit(node, aten.clone.default, (chosen,), {"memory_format": torch.contiguous_format})


RULE = Rule("scatter", _rewrite)
