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

from .schema import arguments, is_operator, schema_of, tensors

# What their results' layout is, whatever their fake tensors say of an operand that is not contiguous.
MISTOLD = {"aten::index_fill": torch.preserve_format, "aten::roll": torch.contiguous_format}


# Collectives whose kernels make every result contiguous. Inductor calls them on copies of its own making.
CONTIGUOUS = frozenset({"_c10d_functional::all_reduce_coalesced", "_c10d_functional::broadcast"})


# Operators, or overloads, that torch's iterator over elements lays out, as it does a sum of their operands;
# their meta functions do not.
ITERATED = frozenset(
    {
        *("aten::angle", "aten::complex", "aten::copysign", "aten::div.Scalar_mode", "aten::div.Tensor_mode"),
        *("aten::divide.Scalar_mode", "aten::divide.Tensor_mode", "aten::floor_divide"),
        *("aten::hardsigmoid_backward", "aten::hardswish_backward", "aten::heaviside", "aten::logaddexp"),
        *("aten::logaddexp2", "aten::logical_and", "aten::logical_or", "aten::logical_xor"),
        *("aten::logit_backward", "aten::polar", "aten::special_xlog1py", "aten::special_xlogy"),
        "aten::xlogy",
    }
)


# Operators, or overloads, whose results are laid out by no rule that holds for all operands, or by one that
# only their kernels follow: they are told where all operands are contiguous.
UNTOLD = frozenset(
    {
        *CONTIGUOUS,
        *ITERATED,
        *("aten::_fft_c2c", "aten::_fft_c2r", "aten::_fft_r2c", "aten::_foreach_pow"),
        *("aten::_log_softmax_backward_data", "aten::_standard_gamma"),
        *("aten::_weight_norm_interface", "aten::binary_cross_entropy"),
        *("aten::binary_cross_entropy_backward", "aten::channel_shuffle", "aten::fft_fft2"),
        *("aten::fft_fftn", "aten::fft_ifft2", "aten::fft_ifftn", "aten::isin", "aten::ldexp"),
        *("aten::log_sigmoid", "aten::log_sigmoid_forward", "aten::native_batch_norm"),
        *("aten::native_dropout_backward", "aten::normal", "aten::poisson", "aten::resize_as"),
        *("aten::rrelu", "aten::uniform", "aten::zero"),
        *("aten::_native_batch_norm_legit", "aten::batch_norm_backward", "aten::glu_backward"),
        *("aten::hardtanh_backward", "aten::huber_loss_backward", "aten::max_unpool2d"),
        *("aten::max_unpool3d", "aten::mse_loss_backward", "aten::native_batch_norm_backward"),
        *("aten::native_group_norm_backward", "aten::native_layer_norm_backward"),
        *("aten::nll_loss2d_forward", "aten::pow.Scalar", "aten::reflection_pad2d_backward"),
        *("aten::reflection_pad3d", "aten::reflection_pad3d_backward"),
        *("aten::replication_pad2d", "aten::replication_pad2d_backward", "aten::replication_pad3d"),
        *("aten::replication_pad3d_backward", "aten::smooth_l1_loss_backward"),
    }
)


# These are told but for operands with a dimension of one.
UNTOLD_OF_ONE = frozenset({"aten::index", "aten::_unsafe_index"})


def is_untold(op: Any) -> bool:
    """Return whether fake tensors may lie about what it makes of operands that are not contiguous."""
    return schema_of(op).name in UNTOLD or op.name() in UNTOLD


def may_be_mistold(target: Any) -> bool:
    """Return whether a call's results may have other strides than its fake tensors say."""
    if not is_operator(target):
        return False
    schema = schema_of(target)
    return is_untold(target) or schema.name in MISTOLD or schema.hides_alias


def has_rule(target: Any) -> bool:
    """Return whether a rule tells how a kernel lays out results of which fake tensors say another thing."""
    if not is_operator(target):
        return False
    schema = schema_of(target)
    return schema.name in MISTOLD or schema.hides_alias or schema.name in CONTIGUOUS or _is_iterated(target)


def _is_iterated(op: Any) -> bool:
    return schema_of(op).name in ITERATED or op.name() in ITERATED


def is_mistold(node: Node, operand: torch.Tensor | None = None) -> bool:
    """Return whether a call's result may have other strides than its fake tensor says.

    Args:
        node: the call.
        operand: its first operand, laid out as it will be; as it is written by default.
    """
    if node.op != "call_function" or not is_operator(node.target):
        return False
    schema, ruled = schema_of(node.target), has_rule(node.target)
    if not ruled and not is_untold(node.target):
        return False
    if is_untold(node.target) and _is_plain(node):
        return False
    args = [map_arg(value, lambda n: n.meta.get("val")) for _, value in arguments(node)]
    args = args if operand is None else [operand, *args[1:]]
    results = list(tensors(node.meta.get("val")))
    if schema.hides_alias:
        return _is_hidden(args, results)
    layouts = made(node.target, args) if ruled else None
    return layouts is None or layouts != [result.stride() for result in results]


def _is_hidden(args: list[Any], results: list[torch.Tensor]) -> bool:
    """Return whether what is handed on lies elsewhere than a fake tensor says."""
    value = args[0] if args else None
    if not isinstance(value, torch.Tensor) or len(results) != 1:
        return False  # no graph that could be analysed
    if not _is_static(value):
        return True
    (result,) = results
    told = result.stride() == value.stride() and result.storage_offset() == value.storage_offset()
    return value.device == result.device and not told


def made(op: Any, args: Sequence[Any]) -> list[tuple[int, ...]] | None:
    """Return the strides that the kernel of an operator with a rule gives to its results.

    Args:
        op: the operator.
        args: its arguments in order, tensors laid out as they are given.

    Returns:
        The strides of each result, ``None`` where the rule does not tell them.
    """
    name, values = schema_of(op).name, list(tensors(args))
    if not all(map(_is_static, values)) or not values:
        return None  # to ask others for their strides adds a guard
    if _is_iterated(op):
        strides = _iterated(values)
        return None if strides is None else [strides]
    firsts = list(tensors(args[0]))
    memory_format = MISTOLD.get(name, torch.contiguous_format)
    if name == "aten::roll" and any(map(_may_be_channels_last, firsts)):
        return None  # a cat of parts, which may be so as well
    return [like.clone(memory_format=memory_format).stride() for like in map(_meta, firsts)]


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


def _is_static(value: torch.Tensor) -> bool:
    return all(isinstance(n, int) for n in (*value.shape, *value.stride(), value.storage_offset()))


def _is_plain(node: Node) -> bool:
    """Return whether all that a call is given and returns is contiguous, whatever its sizes are."""
    values = [*(n.meta.get("val") for n in node.all_input_nodes), node.meta.get("val")]
    return all(_is_contiguous(t) for value in values for t in tensors(value))


def _is_contiguous(tensor: torch.Tensor) -> bool:
    return _is_static(tensor) and tensor.is_contiguous()
