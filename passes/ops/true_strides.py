"""Operators whose results have other strides, or begin elsewhere, than their fake tensors say.

Fake tensors come from a meta function, which for these is not what the kernel lays its result out by, or from
a copy where the operand itself is returned. What is decided by strides is then decided by nothing: such
operators keep the operands that they are given, and nobody writes bytes of their results by an offset.
``tests/passes/ops/test_true_strides.py`` holds the real results of all operators that it can call against
fake ones, and ``tests/passes/ops/test_sample_inputs.py`` those of torch's own sample inputs in other layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from ..memory.region import Size, as_size, is_static
from .schema import arguments, is_operator, schema_of, tensors


def may_be_mistold(target: Any) -> bool:
    """Return whether a call's results may have other strides than its fake tensors say."""
    if not is_operator(target):
        return False
    schema = schema_of(target)
    return schema.untold or schema.laid_out is not None or schema.hides_alias


def has_rule(target: Any) -> bool:
    """Return whether a rule tells how a kernel lays out results of which fake tensors say another thing."""
    if not is_operator(target):
        return False
    schema = schema_of(target)
    return schema.iterated or schema.laid_out is not None or schema.hides_alias


def is_mistold(node: Node, operand: torch.Tensor | None = None) -> bool:
    """Return whether a call's result may have other strides than its fake tensor says.

    Args:
        node: the call.
        operand: its first operand, laid out as it will be; as it is written by default.
    """
    if node.op != "call_function" or not is_operator(node.target):
        return False
    schema, ruled = schema_of(node.target), has_rule(node.target)
    if not ruled and not schema.untold:
        return False
    if schema.untold and _is_plain(node):
        return False
    args = [map_arg(value, lambda n: n.meta.get("val")) for _, value in arguments(node)]
    args = args if operand is None else [operand, *args[1:]]
    results = list(tensors(node.meta.get("val")))
    if schema.hides_alias:
        return _is_hidden(args, results)
    layouts = made(node.target, args) if ruled else None
    return layouts is None or layouts != [tuple(map(as_size, result.stride())) for result in results]


def _is_hidden(args: list[Any], results: list[torch.Tensor]) -> bool:
    """Return whether what is handed on lies elsewhere than a fake tensor says."""
    value = args[0] if args else None
    if not isinstance(value, torch.Tensor) or len(results) != 1:
        return False  # no graph that could be analysed
    if not is_static(value):
        return True
    (result,) = results
    told = is_static(result) and result.stride() == value.stride()
    told = told and result.storage_offset() == value.storage_offset()
    return value.device == result.device and not told


def made(op: Any, args: Sequence[Any]) -> list[tuple[int, ...]] | None:
    """Return the strides that the kernel of an operator with a rule gives to its results.

    Args:
        op: the operator.
        args: its arguments in order, tensors laid out as they are given.

    Returns:
        The strides of each result, ``None`` where the rule does not tell them.
    """
    schema, values = schema_of(op), list(tensors(args))
    if not all(map(is_static, values)) or not values:
        return None  # to ask others for their strides adds a guard
    if schema.iterated:
        strides = _iterated(values)
        return None if strides is None else [strides]
    firsts = list(tensors(args[0]))
    if schema.name == "aten::roll" and any(map(_may_be_channels_last, firsts)):
        return None  # a cat of parts, which may be so as well
    return [like.clone(memory_format=schema.laid_out).stride() for like in map(_meta, firsts)]


def _may_be_channels_last(value: torch.Tensor) -> bool:
    """Return whether torch may take a tensor for channels-last: its channels lie inside its columns."""
    return value.dim() > 3 and not value.is_contiguous() and value.stride(1) <= value.stride(-1)


def _iterated(values: list[torch.Tensor]) -> tuple[int, ...] | None:
    """Return the strides of what is computed element by element, ``None`` of what does not fit together."""
    alike = [_meta(value) for value in values]
    try:
        return (torch.add(*alike) if len(alike) > 1 else alike[0].neg()).stride()
    except (RuntimeError, TypeError):
        return None


def _meta(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(value.shape, value.stride(), device="meta")


def _is_plain(node: Node) -> bool:
    """Return whether all that a call is given and returns is contiguous, whatever its sizes are."""
    values = [*(n.meta.get("val") for n in node.all_input_nodes), node.meta.get("val")]
    return all(_is_contiguous(t) for value in values for t in tensors(value))


def _is_contiguous(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() if is_static(tensor) else has_usual_strides(tensor)


def has_usual_strides(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has all strides of a contiguous one, those of dimensions of one, too."""
    usual: Size = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if as_size(stride) != usual:  # to ask torch adds a guard
            return False
        usual = usual * as_size(size)
    return True


def has_one(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has a dimension of one, or one that may be."""
    return not all(isinstance(n, int) and n > 1 for n in tensor.shape)
