"""A decoder whose state is its own: a ring of keys and values, and the places that the next token goes to.

Everything that a step writes is a buffer, so that the module can be compiled ahead of time and called with
nothing but the next token.
"""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Layer(torch.nn.Module):
    """Attention over the last tokens, with a residual connection; keys and values lie in one buffer."""

    ring: torch.Tensor

    def __init__(self, batch: int, hidden: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv: torch.nn.Linear = torch.nn.Linear(hidden, 3 * hidden, bias=False)
        self.output: torch.nn.Linear = torch.nn.Linear(hidden, hidden, bias=False)
        self.register_buffer("ring", torch.randn(2, batch, heads, length, hidden // heads))

    def forward(self, token: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, hidden)``; the token of each sequence overwrites the oldest one in its ring."""
        normed = torch.nn.functional.rms_norm(token, token.shape[-1:])
        query, key, value = self.qkv(normed).unflatten(-1, (3, self.heads, -1)).unbind(1)
        sequences = torch.arange(len(places), device=places.device)
        keys, values = self.ring.unbind()
        keys[sequences, :, places] = key
        values[sequences, :, places] = value
        mixed = torch.nn.functional.scaled_dot_product_attention(query.unsqueeze(2), keys, values)
        output: torch.Tensor = token + self.output(mixed.flatten(1))
        return output


class Decoder(torch.nn.Module):
    """Layers with a ring each, and one place for each sequence, which goes round with every step."""

    places: torch.Tensor

    def __init__(self, layers: int, batch: int, hidden: int, heads: int, length: int) -> None:
        super().__init__()
        self.length = length
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Layer(batch, hidden, heads, length) for _ in range(layers)
        )
        self.register_buffer("places", torch.arange(batch) % length)

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, hidden)`` after the last layer."""
        for layer in self.layers:
            token = layer(token, self.places)
        self.places.add_(1).remainder_(self.length)
        return token


def decode_step(
    device: str, *, layers: int, hidden: int, heads: int, batch: int, length: int, dtype: str
) -> Program:
    """Return one step of ``batch`` sequences; ``batch`` is 2 or more (see ``ahead_of_time`` in the docs)."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Decoder(layers, batch, hidden, heads, length).to(getattr(torch, dtype)).eval()
        token = torch.randn(batch, hidden, dtype=getattr(torch, dtype))
    return Program(model, (token,))
