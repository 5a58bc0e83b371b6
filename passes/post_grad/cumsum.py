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
from .ground import Ground, dim_of, is_plain
from .held import held, rounded
from .rule import Places, Rule

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims
_LONGEST = 1 << 48  # no machine addresses more elements


def _rewrite(graph: Graph) -> Places:
    ground = Ground(graph)
    for node in list(graph.find_nodes(op="call_function", target=aten.cumsum.default)):
        constant: Any = argument(node, "self")
        if constant.target is not aten.full.default or not is_plain(node.meta.get("val")):
            continue
        summand = _summand(node, constant)
        why = "the constant has no exact value" if summand is None else _why_not(node, constant, summand)
        yield node.name, node if why else None, why
        if summand is not None and not why:
            ground.replace(node, _counted(ground, node, constant, summand))


def _summand(node: Node, constant: Node) -> int | float | None:
    """Return the number that is added up, as the dtype of the sums holds it, ``None`` where none is known.

    Whole numbers are left as they are: those that do not fit lose their upper bits, as sums do.
    """
    dtype, source = node.meta["val"].dtype, constant.meta["val"].dtype
    value = held(argument(constant, "fill_value"), source)
    if value is not None and source.is_floating_point:
        value = rounded(value, source)
    if value is None or dtype == torch.bool or dtype.is_complex:
        return None if value is None else int(math.isfinite(value) and value)
    if dtype.is_floating_point:
        is_told = held(value, dtype) is not None and (dtype == source or not math.isnan(value))
        return rounded(value, dtype) if is_told else None  # a converted NaN may have other bits
    return math.trunc(value) if math.isfinite(value) else None


def _why_not(node: Node, constant: Node, summand: float) -> str:
    """Return why sums are not counted, empty where counting gives them to the last bit."""
    val: torch.Tensor = node.meta["val"]
    if any(name in written(user) for user, name in uses(constant)):
        return "the constant is written"
    if val.dim() == 0:
        return "nothing is added up"
    if val.dtype == torch.bool or val.dtype.is_complex:
        return f"sums of {val.dtype} are no numbers to count"
    if val.dtype.is_floating_point:
        length = val.shape[dim_of(node, val.dim())]
        is_exact = _is_exact(summand, length if isinstance(length, int) else _LONGEST, val)
        return "" if is_exact else "sums may be rounded"
    info = torch.iinfo(val.dtype)
    is_converted = constant.meta["val"].dtype.is_floating_point and not info.min <= summand <= info.max
    return "the constant does not fit into the sums" if is_converted else ""


def _is_exact(summand: float, length: float, val: torch.Tensor) -> bool:
    """Return whether each sum is a multiple of the summand, rounded once.

    So it is where no partial sum is rounded, in whatever order they are made. On a CPU torch adds in a larger
    dtype, from 0 on, and rounds each sum to its own dtype: only sums in the larger one have to be exact, and
    of them those that are finite when rounded. Greater ones stay greater.
    """
    if not math.isfinite(summand):
        return True
    if summand == 0:  # 0. + -0. is 0.
        return val.device.type == "cpu" or math.copysign(1, summand) > 0
    adding = val.dtype
    if val.device.type == "cpu":
        adding = _adding(val.dtype)
        length = min(length, 2 * torch.finfo(val.dtype).max / abs(summand) + 1)
    odd = abs(summand).as_integer_ratio()[0]
    odd //= odd & -odd
    return odd * length <= 2 / torch.finfo(adding).eps


def _adding(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which torch adds up numbers on a CPU."""
    return torch.float32 if dtype.itemsize == 2 else torch.float64


def _counted(ground: Ground, node: Node, constant: Node, summand: float) -> Node:
    """Insert the sums; integers are counted modulo 2**64, of which each dtype takes its last bits."""
    val, shape = node.meta["val"], argument(constant, "size")
    emit = ground.emitter.view
    if summand == 0 or not math.isfinite(summand):
        like = {"dtype": val.dtype, "layout": torch.strided, "device": val.device, "pin_memory": False}
        return emit(node, aten.full.default, (shape, summand or 0), like)
    dim = dim_of(node, val.dim())
    sums = _multiples(ground, node, shape[dim], summand)
    if val.dim() == 1:
        return sums
    row = [shape[dim] if d == dim else 1 for d in range(val.dim())]
    repeated = emit(node, aten.expand.default, (emit(node, aten.view.default, (sums, row)), shape))
    return emit(node, aten.clone.default, (repeated,), {"memory_format": torch.contiguous_format})


def _multiples(ground: Ground, node: Node, length: Any, summand: float) -> Node:
    """Insert as many multiples of a number, each rounded once."""
    dtype, device, emit = node.meta["val"].dtype, node.meta["val"].device, ground.emitter.view
    convert = prims.convert_element_type.default
    # The length is below 2**48. What Inductor counts by fits into 32 bits.
    is_counted = summand == math.trunc(summand) and abs(summand) < (
        1 << 15 if dtype.is_floating_point and not isinstance(length, int) else 1 << 31
    )
    step = int(summand) if is_counted else 1
    count = {"start": step, "step": step, "dtype": torch.int64, "device": device, "requires_grad": False}
    made = emit(node, prims.iota.default, (length,), count)
    if not is_counted and dtype.is_floating_point:
        made = emit(node, convert, (made, _adding(dtype)))
    if not is_counted:
        made = emit(node, aten.mul.Tensor, (made, _signed(summand)))
    return made if made.meta["val"].dtype == dtype else emit(node, convert, (made, dtype))


def _signed(number: float) -> float:
    """Return a whole number modulo 2**64 as one with a sign; a float as it is."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63) if isinstance(number, int) else number


def _hide(node: Node) -> None:
    """Have the sums taken of a view of the constant."""
    constant: Any = argument(node, "self")
    emitter = Ground(node.graph).emitter
    node.replace_input_with(constant, emitter.view(node, aten.alias.default, (constant,)))


RULE = Rule("cumsum", _rewrite, _hide)
