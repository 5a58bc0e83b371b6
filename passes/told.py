"""Operators whose results have other strides, or begin elsewhere, than their fake tensors say.

Fake tensors come from a meta function, which for these is not what the kernel lays its result out by, or
from a copy where the operand itself is returned. What is decided by strides is then decided by nothing: such
operators keep the operands that they are given, and nobody writes bytes of their results by an offset.
``tests/passes/test_told.py`` holds the real results of all operators that it can call against fake ones.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from .schema import argument, is_operator, schema_of, tensors

# What their results' layout is, whatever their fake tensors say of an operand that is not contiguous.
MISTOLD = {"aten::index_fill": torch.preserve_format, "aten::roll": torch.contiguous_format}

# Operators, or overloads, whose results are laid out by no rule that holds for all operands: they are told
# where all of these are contiguous.
UNTOLD = frozenset(
    {
        *("_c10d_functional::all_reduce_coalesced", "_c10d_functional::broadcast", "aten::_fft_c2c"),
        *("aten::_fft_c2r", "aten::_fft_r2c", "aten::_foreach_pow", "aten::_log_softmax_backward_data"),
        *("aten::_standard_gamma", "aten::_weight_norm_interface", "aten::angle"),
        *("aten::binary_cross_entropy", "aten::binary_cross_entropy_backward", "aten::channel_shuffle"),
        *("aten::complex", "aten::copysign", "aten::div.Scalar_mode", "aten::div.Tensor_mode"),
        *("aten::divide.Scalar_mode", "aten::divide.Tensor_mode", "aten::fft_fft2", "aten::fft_fftn"),
        *("aten::fft_ifft2", "aten::fft_ifftn", "aten::floor_divide", "aten::hardsigmoid_backward"),
        *("aten::hardswish_backward", "aten::heaviside", "aten::isin", "aten::ldexp", "aten::log_sigmoid"),
        *("aten::log_sigmoid_forward", "aten::logaddexp", "aten::logaddexp2", "aten::logical_and"),
        *("aten::logical_or", "aten::logical_xor", "aten::logit_backward", "aten::native_batch_norm"),
        *("aten::native_dropout_backward", "aten::normal", "aten::poisson", "aten::polar"),
        *("aten::resize_as", "aten::rrelu", "aten::special_xlog1py", "aten::special_xlogy"),
        *("aten::uniform", "aten::xlogy", "aten::zero"),
    }
)

# These are told but for operands with a dimension of one.
UNTOLD_OF_ONE = frozenset({"aten::index", "aten::_unsafe_index"})


def is_untold(op: Any) -> bool:
    """Return whether no rule tells the strides of what it makes of operands that are not contiguous."""
    return schema_of(op).name in UNTOLD or op.name() in UNTOLD


def may_be_mistold(target: Any) -> bool:
    """Return whether a call's results may have other strides than its fake tensors say."""
    if not is_operator(target):
        return False
    schema = schema_of(target)
    return is_untold(target) or schema.name in MISTOLD or schema.hides_alias


def is_mistold(node: Node, operand: torch.Tensor | None = None) -> bool:
    """Return whether a call's result may have other strides than its fake tensor says.

    Args:
        node: the call.
        operand: its first operand, laid out as it will be; as it is written by default.
    """
    if node.op != "call_function" or not is_operator(node.target):
        return False
    schema = schema_of(node.target)
    if is_untold(node.target):
        return not _is_plain(node)
    memory_format = MISTOLD.get(schema.name)
    if memory_format is None and not schema.hides_alias:
        return False
    first: Any = argument(node, schema.names[0])
    value = first.meta.get("val") if operand is None and isinstance(first, Node) else operand
    result = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or not isinstance(result, torch.Tensor):
        return False  # no graph that could be analysed
    if not all(isinstance(n, int) for n in (*value.shape, *value.stride(), value.storage_offset())):
        return True  # asked of others, it adds a guard
    if memory_format is None:
        told = result.stride() == value.stride() and result.storage_offset() == value.storage_offset()
        return value.device == result.device and not told
    if memory_format is torch.contiguous_format and value.dim() > 3 and not value.is_contiguous():
        return True  # roll is a cat of parts, which may be channels-last as its operands are
    like = torch.empty_strided(
        value.shape, value.stride(), device="meta"
    )  # as torch's own kernel lays it out
    return like.clone(memory_format=memory_format).stride() != result.stride()


def _is_plain(node: Node) -> bool:
    """Return whether all that a call is given and returns is contiguous, whatever its sizes are."""
    values = [*(n.meta.get("val") for n in node.all_input_nodes), node.meta.get("val")]
    return all(_is_contiguous(t) for value in values for t in tensors(value))


def _is_contiguous(tensor: torch.Tensor) -> bool:
    if not all(isinstance(n, int) for n in (*tensor.shape, *tensor.stride())):
        return False  # asked of others, it adds a guard
    return tensor.is_contiguous()
