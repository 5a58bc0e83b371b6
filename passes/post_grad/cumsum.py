"""The sums of a constant, ``cumsum(full(shape, 3))``, are counted: 3, 6, 9, ...

Inductor's rule multiplies by the constant as it is written, not as its dtype holds it, drops ``dtype=``,
returns a tensor with strides of 0, and fails for a tensor of no dimension and a constant that is a size.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Graph, Node

from ..graph.alias import uses, written
from ..ops.schema import argument
from .ground import Ground, dim_of, held, is_plain
from .rule import Places, Rule

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims


def _rewrite(graph: Graph) -> Places:
    ground = Ground(graph)
    for node in list(graph.find_nodes(op="call_function", target=aten.cumsum.default)):
        constant: Any = argument(node, "self")
        if constant.target is not aten.full.default or not is_plain(node.meta.get("val")):
            continue
        summand = _summand(constant)
        why = "the constant has no exact value" if summand is None else _why_not(node, constant, summand)
        yield node.name, node if why else None, why
        if summand is not None and not why:
            ground.replace(node, _counted(ground, node, constant, summand))


def _summand(constant: Node) -> int | None:
    """Return the whole number that a constant holds, ``None`` where it holds none, or -0."""
    dtype = constant.meta["val"].dtype
    value = held(argument(constant, "fill_value"), dtype)
    if value is None or not dtype.is_floating_point:
        return None if value is None else int(value)
    is_whole = (
        math.isfinite(value) and value == math.trunc(value) and abs(value) <= 2 / torch.finfo(dtype).eps
    )
    return int(value) if is_whole and str(value) != "-0.0" else None


def _why_not(node: Node, constant: Node, summand: int) -> str:
    """Return why sums are not counted, empty where counting gives them to the last bit."""
    val: torch.Tensor = node.meta["val"]
    if any(name in written(user) for user, name in uses(constant)):
        return "the constant is written"
    if val.dim() == 0:
        return "nothing is added up"
    if val.dtype == torch.bool or val.dtype.is_complex:
        return f"sums of {val.dtype} are no numbers to count"
    if abs(summand) >= 1 << 31:
        return "the sums may not fit"
    length = val.shape[dim_of(node, val.dim())]
    if val.dtype.is_floating_point:  # then no partial sum is rounded, in whatever order it is made
        if not isinstance(length, int) or abs(summand) * length > 2 / torch.finfo(val.dtype).eps:
            return "sums may be rounded"
    elif constant.meta["val"].dtype.is_floating_point:
        info = torch.iinfo(val.dtype)
        return "" if info.min <= summand <= info.max else "the constant does not fit into the sums"
    return ""


def _counted(ground: Ground, node: Node, constant: Node, summand: int) -> Node:
    """Insert the sums; integers are counted modulo 2**64, of which each dtype takes its last bits."""
    val, shape = node.meta["val"], argument(constant, "size")
    emit = ground.emitter.view
    if summand == 0:
        like = {"dtype": val.dtype, "layout": torch.strided, "device": val.device, "pin_memory": False}
        return emit(node, aten.full.default, (shape, 0), like)
    dim = dim_of(node, val.dim())
    count = {"start": summand, "step": summand, "dtype": torch.int64, "device": val.device}
    sums = emit(node, prims.iota.default, (shape[dim],), {**count, "requires_grad": False})
    if val.dtype != torch.int64:
        sums = emit(node, prims.convert_element_type.default, (sums, val.dtype))
    if val.dim() == 1:
        return sums
    row = [shape[dim] if d == dim else 1 for d in range(val.dim())]
    repeated = emit(node, aten.expand.default, (emit(node, aten.view.default, (sums, row)), shape))
    return emit(node, aten.clone.default, (repeated,), {"memory_format": torch.contiguous_format})


def _hide(node: Node) -> None:
    """Have the sums taken of a view of the constant."""
    constant: Any = argument(node, "self")
    emitter = Ground(node.graph).emitter
    node.replace_input_with(constant, emitter.view(node, aten.alias.default, (constant,)))


RULE = Rule("cumsum", _rewrite, _hide)
