"""Operators of an LLM serving engine, with vLLM's names and schemas, in plain torch for any device."""

from __future__ import annotations

import functools

import torch

from .library import define

NAMESPACE = "serving"

_SCHEMAS = {
    "rms_norm": "(Tensor(a!) result, Tensor input, Tensor weight, float epsilon) -> ()",
    "fused_add_rms_norm": ("(Tensor(a!) input, Tensor(b!) residual, Tensor weight, float epsilon) -> ()"),
    "rotary_embedding": (
        "(Tensor positions, Tensor(a!) query, Tensor(b!)? key, int head_size, Tensor cos_sin_cache, "
        "bool is_neox) -> ()"
    ),
    "reshape_and_cache_flash": (
        "(Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, Tensor slot_mapping) -> ()"
    ),
    "unified_attention_with_output": (
        "(Tensor query, Tensor key_cache, Tensor value_cache, Tensor(a!) output, Tensor block_table, "
        "Tensor seq_lens, float scale) -> ()"
    ),
    "prefill_attention_with_output": (
        "(Tensor query, Tensor key, Tensor value, Tensor(a!) output, int prompt, float scale) -> ()"
    ),
    "silu_and_mul": "(Tensor(a!) result, Tensor input) -> ()",
}


@functools.cache
def register() -> torch.library.Library:
    """Define the operators, once in a process; they live as ``torch.ops.serving.<name>``."""
    return define(NAMESPACE, _SCHEMAS, {name: globals()[f"_{name}"] for name in _SCHEMAS})


def _rms_norm(result: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    wide = input.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    result.copy_((wide * scale).to(weight.dtype) * weight)


def _fused_add_rms_norm(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> None:
    residual.add_(input)
    _rms_norm(input, residual, weight, epsilon)


def _rotary_embedding(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor | None,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
) -> None:
    cos, sin = cos_sin_cache[positions].unsqueeze(-2).chunk(2, -1)
    for tensor in (query, key):
        if tensor is not None:
            _rotate(tensor.unflatten(-1, (-1, head_size)), cos, sin, is_neox)


def _rotate(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, is_neox: bool) -> None:
    """Rotate ``heads`` of shape ``(tokens, heads, head_size)`` in place."""
    first, second = heads.chunk(2, -1) if is_neox else (heads[..., ::2], heads[..., 1::2])
    rotated = first * cos - second * sin, second * cos + first * sin
    first.copy_(rotated[0])
    second.copy_(rotated[1])


def _reshape_and_cache_flash(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> None:
    """Write token ``i`` of ``(tokens, heads, size)`` into slot ``slot_mapping[i]`` of the paged caches.

    A cache is ``(blocks, block, heads, size)``; slots count through its blocks.
    """
    block = key_cache.shape[1]
    where = slot_mapping // block, slot_mapping % block
    key_cache.index_put_(where, key)
    value_cache.index_put_(where, value)


def _unified_attention_with_output(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    output: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    scale: float,
) -> None:
    """Decode: one query of ``(sequences, heads, size)`` over each sequence's blocks of the paged cache."""
    keys, values = (cache[block_table].flatten(1, 2).transpose(1, 2) for cache in (key_cache, value_cache))
    groups = query.shape[1] // keys.shape[1]
    keys, values = (tensor.repeat_interleave(groups, 1) for tensor in (keys, values))
    seen = torch.arange(keys.shape[2], device=query.device) < seq_lens[:, None]
    mask = torch.zeros(seen.shape, dtype=query.dtype, device=query.device).masked_fill(~seen, float("-inf"))
    attention = torch.nn.functional.scaled_dot_product_attention(
        query.unsqueeze(2), keys, values, mask[:, None, None], scale=scale
    )
    output.copy_(attention.squeeze(2))


def _prefill_attention_with_output(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    output: torch.Tensor,
    prompt: int,
    scale: float,
) -> None:
    """Prefill: causal attention within each ``prompt`` tokens of ``(tokens, heads, size)``."""
    query, key, value = (tensor.unflatten(0, (-1, prompt)).transpose(1, 2) for tensor in (query, key, value))
    attention = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=True, scale=scale, enable_gqa=True
    )
    output.copy_(attention.transpose(1, 2).flatten(0, 1))


def _silu_and_mul(result: torch.Tensor, input: torch.Tensor) -> None:
    """Write the activated half: in the result's own memory, for the engine's kernel needs no other."""
    gate, up = input.chunk(2, -1)
    torch.nn.functional.silu(result.copy_(gate), inplace=True).mul_(up)
