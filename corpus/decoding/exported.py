"""An exported program: its caches are buffers of its module, which are written in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Cache(torch.nn.Module):
    """Keys and values of one layer, and how often each place was written."""

    keys: torch.Tensor
    values: torch.Tensor
    written: torch.Tensor

    def __init__(self, batch: int, heads: int, length: int, size: int) -> None:
        super().__init__()
        self.register_buffer("keys", torch.randn(batch, heads, length, size))
        self.register_buffer("values", torch.randn(batch, heads, length, size))
        self.register_buffer("written", torch.zeros(length, dtype=torch.int64))

    def update(self, at: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        """Store ``(batch, heads, tokens, size)`` at the places ``at``, ``(tokens,)``."""
        self.keys[:, :, at] = key
        self.values[:, :, at] = value
        self.written.index_add_(0, at, torch.ones_like(at))


class Layer(torch.nn.Module):
    """Attention over a cache, with a residual connection."""

    def __init__(self, batch: int, hidden: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv: torch.nn.Linear = torch.nn.Linear(hidden, 3 * hidden, bias=False)
        self.output: torch.nn.Linear = torch.nn.Linear(hidden, hidden, bias=False)
        self.cache: Cache = Cache(batch, heads, length, hidden // heads)

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, tokens, hidden)``; the tokens are those at the places ``at``."""
        normed = torch.nn.functional.rms_norm(tokens, tokens.shape[-1:])
        query, key, value = self.qkv(normed).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        self.cache.update(at, key, value)
        mask = torch.arange(self.cache.keys.shape[2], device=at.device) <= at.unsqueeze(1)
        mixed = torch.nn.functional.scaled_dot_product_attention(
            query, self.cache.keys, self.cache.values, mask
        )
        output: torch.Tensor = tokens + self.output(mixed.transpose(1, 2).flatten(2))
        return output


class Decoder(torch.nn.Module):
    """Layers with a cache each."""

    def __init__(self, layers: int, batch: int, hidden: int, heads: int, length: int) -> None:
        super().__init__()
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Layer(batch, hidden, heads, length) for _ in range(layers)
        )

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """Return the tokens after the last layer."""
        for layer in self.layers:
            tokens = layer(tokens, at)
        return tokens


def decode_step(
    device: str,
    *,
    layers: int,
    hidden: int,
    heads: int,
    batch: int,
    length: int,
    tokens: int,
    dtype: str,
) -> Program:
    """Return the exported program of one step that decodes ``tokens`` tokens, as a module."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Decoder(layers, batch, hidden, heads, length).to(getattr(torch, dtype)).eval()
        inputs = torch.randn(batch, tokens, hidden, dtype=getattr(torch, dtype))
        at = torch.arange(length // 2, length // 2 + tokens)
    with torch.no_grad():
        exported = torch.export.export(model, (inputs, at))
    return Program(exported.module(), (inputs, at))
