"""A Llama-like decoder in plain torch whose KV cache is a module of its own, as in gpt-fast."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch

Rows = tuple[torch.Tensor, torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of a decoder."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    vocab: int

    @property
    def head_size(self) -> int:
        """Elements of one head."""
        return self.hidden // self.heads


class Cache(torch.nn.Module):
    """Keys and values of one layer."""

    def forward(self, position: torch.Tensor | int, key: torch.Tensor, value: torch.Tensor) -> Rows:
        """Store new tokens and return all keys and values, each ``(batch, kv_heads, length, size)``.

        Args:
            position: where the tokens go, ``(tokens,)``, or one place as a number.
            key: ``(batch, kv_heads, tokens, size)``.
            value: as ``key``.
        """
        raise TypeError(f"{type(self).__name__} stores nothing")


class Layer(torch.nn.Module):
    """Attention over a cache, and the MLP, each behind a norm."""

    def __init__(self, shape: Shape, cache: Cache) -> None:
        super().__init__()
        self.shape = shape
        self.cache = cache
        self.attention_norm: torch.nn.RMSNorm = torch.nn.RMSNorm(shape.hidden)
        self.mlp_norm: torch.nn.RMSNorm = torch.nn.RMSNorm(shape.hidden)
        width = (shape.heads + 2 * shape.kv_heads) * shape.head_size
        self.qkv: torch.nn.Linear = torch.nn.Linear(shape.hidden, width, bias=False)
        self.output: torch.nn.Linear = torch.nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.gate: torch.nn.Linear = torch.nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up: torch.nn.Linear = torch.nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down: torch.nn.Linear = torch.nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(
        self, hidden: torch.Tensor, position: torch.Tensor | int, rope: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Return the next hidden states ``(batch, tokens, hidden)``."""
        hidden = hidden + self._attention(self.attention_norm(hidden), position, rope, mask)
        inner = self.mlp_norm(hidden)
        output: torch.Tensor = self.down(torch.nn.functional.silu(self.gate(inner)) * self.up(inner))
        return hidden + output

    def _attention(
        self, hidden: torch.Tensor, position: torch.Tensor | int, rope: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        heads, kv_heads = self.shape.heads, self.shape.kv_heads
        qkv = self.qkv(hidden).unflatten(-1, (-1, self.shape.head_size)).transpose(1, 2)
        query, key, value = qkv.split([heads, kv_heads, kv_heads], 1)
        keys, values = self.cache(position, _rotated(key, rope), value)
        keys, values = (tensor.repeat_interleave(heads // kv_heads, 1) for tensor in (keys, values))
        attention = torch.nn.functional.scaled_dot_product_attention(
            _rotated(query, rope), keys, values, attn_mask=mask
        )
        output: torch.Tensor = self.output(attention.transpose(1, 2).flatten(2))
        return output


class Decoder(torch.nn.Module):
    """A stack of layers; ``make_cache`` makes the cache of each."""

    rope: torch.Tensor
    causal: torch.Tensor

    def __init__(self, shape: Shape, length: int, make_cache: Callable[[], Cache]) -> None:
        super().__init__()
        self.embedding: torch.nn.Embedding = torch.nn.Embedding(shape.vocab, shape.hidden)
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Layer(shape, make_cache()) for _ in range(shape.layers)
        )
        self.norm: torch.nn.RMSNorm = torch.nn.RMSNorm(shape.hidden)
        self.head: torch.nn.Linear = torch.nn.Linear(shape.hidden, shape.vocab, bias=False)
        angles = torch.outer(
            torch.arange(float(length)), 10000 ** -torch.linspace(0, 1, shape.head_size // 2)
        )
        self.register_buffer("rope", torch.stack([angles.cos(), angles.sin()]))
        self.register_buffer("causal", torch.ones(length, length, dtype=torch.bool).tril())

    def forward(self, tokens: torch.Tensor, position: torch.Tensor | int) -> torch.Tensor:
        """Return the logits of ``(batch, tokens)`` tokens, which are stored at ``position``."""
        where = torch.full((1,), position, device=tokens.device) if isinstance(position, int) else position
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden, position, self.rope[:, where], self.causal[where])
        logits: torch.Tensor = self.head(self.norm(hidden))
        return logits


def _rotated(heads: torch.Tensor, rope: torch.Tensor) -> torch.Tensor:
    """Return ``(batch, heads, tokens, size)`` turned by the angles of their positions."""
    cos, sin = rope
    first, second = heads.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
