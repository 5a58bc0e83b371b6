"""A user Triton kernel that rotates queries and keys in place, inside the projection that holds both."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Attention(torch.nn.Module):
    """Causal attention of one sequence."""

    def __init__(self, hidden: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.kv_heads = kv_heads
        self.size: int = hidden // heads
        width = (heads + 2 * kv_heads) * self.size
        self.qkv: torch.nn.Linear = torch.nn.Linear(hidden, width, bias=False)
        self.output: torch.nn.Linear = torch.nn.Linear(hidden, hidden, bias=False)

    def forward(self, hidden: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Return ``(tokens, hidden)``; ``cos`` and ``sin`` are ``(tokens, size / 2)``."""
        from .rope_kernel import rotate

        tokens, half = len(hidden), self.size // 2
        parts = self.qkv(hidden).unflatten(-1, (-1, self.size))
        query, key, value = parts.split([self.heads, self.kv_heads, self.kv_heads], 1)
        heads, block = (1 << (n - 1).bit_length() for n in (self.heads, half))
        rotate[(tokens,)](
            query,
            key,
            cos,
            sin,
            parts.stride(0),
            self.heads,
            self.kv_heads,
            half,
            BLOCK_HEADS=heads,
            BLOCK=block,
        )
        query, key, value = (part.transpose(0, 1)[None] for part in (query, key, value))
        groups = self.heads // self.kv_heads
        key, value = (part.repeat_interleave(groups, 1) for part in (key, value))
        attention = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        output: torch.Tensor = self.output(attention[0].transpose(0, 1).flatten(1))
        return output


class Stack(torch.nn.Module):
    """Attention behind norms, with residual connections."""

    def __init__(self, layers: int, hidden: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Attention(hidden, heads, kv_heads) for _ in range(layers)
        )

    def forward(self, hidden: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Return the hidden states ``(tokens, hidden)`` of the last layer."""
        for layer in self.layers:
            hidden = hidden + layer(torch.nn.functional.rms_norm(hidden, hidden.shape[-1:]), cos, sin)
        return hidden


def forward(
    device: str, *, layers: int, hidden: int, heads: int, kv_heads: int, tokens: int, dtype: str
) -> Program:
    """Return ``layers`` layers of attention over one sequence of ``tokens`` tokens."""
    torch.manual_seed(0)
    half = hidden // heads // 2
    with torch.device(device):
        model = Stack(layers, hidden, heads, kv_heads).to(getattr(torch, dtype)).eval()
        inputs = torch.randn(tokens, hidden, dtype=getattr(torch, dtype))
        angles = torch.outer(torch.arange(float(tokens)), 10000 ** -torch.linspace(0, 1, half))
    return Program(model, (inputs, angles.cos().to(inputs.dtype), angles.sin().to(inputs.dtype)))
