"""Quantizing operators of a serving engine, with vLLM's names and schemas, in plain torch for any device."""

from __future__ import annotations

import functools

import torch

from .library import define

NAMESPACE = "serving_quant"

_SCHEMAS = {
    "dynamic_per_token_quant": "(Tensor(a!) result, Tensor input, Tensor(b!) scale, Tensor? scale_ub) -> ()",
    "rms_norm_dynamic_per_token_quant": (
        "(Tensor(a!) result, Tensor input, Tensor weight, Tensor(b!) scale, float epsilon, "
        "Tensor? scale_ub, Tensor(c!)? residual) -> ()"
    ),
    "scaled_mm": (
        "(Tensor(a!) out, Tensor a, Tensor b, Tensor a_scales, Tensor b_scales, Tensor? bias) -> ()"
    ),
}


@functools.cache
def register() -> torch.library.Library:
    """Define the operators, once in a process; they live as ``torch.ops.serving_quant.<name>``."""
    return define(NAMESPACE, _SCHEMAS, {name: globals()[f"_{name}"] for name in _SCHEMAS})


def largest(dtype: torch.dtype) -> float:
    """Return the largest value of a quantized dtype."""
    return float((torch.finfo if dtype.is_floating_point else torch.iinfo)(dtype).max)


def _dynamic_per_token_quant(
    result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor, scale_ub: torch.Tensor | None
) -> None:
    """Write rows of ``(tokens, width)`` as int8 or float8, and their scales ``(tokens, 1)``."""
    wide, most = input.float(), largest(result.dtype)
    peak = wide.abs().amax(-1, keepdim=True)
    peak = peak if scale_ub is None else torch.minimum(peak, scale_ub)
    scale.copy_((peak / most).clamp(min=1e-9))
    quantized = (wide / scale).clamp(-most, most)
    result.copy_(quantized if result.is_floating_point() else quantized.round())


def _rms_norm_dynamic_per_token_quant(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
) -> None:
    """Add ``input`` to ``residual`` in place where there is one, norm the sum, and quantize the norm."""
    if residual is not None:
        input = residual.add_(input)
    wide = input.float()
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon) * weight.float()
    _dynamic_per_token_quant(result, normed, scale, scale_ub)


def _scaled_mm(
    out: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    a_scales: torch.Tensor,
    b_scales: torch.Tensor,
    bias: torch.Tensor | None,
) -> None:
    """Write the product of quantized ``(tokens, k)`` and ``(k, n)``, scaled by row and by column."""
    product = torch.mm(a.to(out.dtype), b.to(out.dtype)) * a_scales * b_scales
    out.copy_(product if bias is None else product + bias)
