"""A cache of keys and values made shorter: the tokens that were attended to most move to its front."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Attention(torch.nn.Module):
    """Attention over a cache that adds up what each token in it was given."""

    def __init__(self, kept: int, recent: int) -> None:
        super().__init__()
        self.kept: int = kept
        self.recent: int = recent

    def forward(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, seen: torch.Tensor
    ) -> torch.Tensor:
        """Return ``(batch, heads, size)``, and keep the ``kept`` tokens seen most and the ``recent`` last.

        Args:
            query: ``(batch, heads, size)``.
            keys: ``(batch, heads, length, size)``; the tokens that stay are moved to its front.
            values: like ``keys``.
            seen: ``(batch, heads, length)``, the attention so far, which moves along.
        """
        weight = torch.einsum("bhd,bhnd->bhn", query, keys).mul(query.shape[-1] ** -0.5).softmax(-1)
        output = torch.einsum("bhn,bhnd->bhd", weight, values)
        seen += weight
        old = seen.shape[-1] - self.recent
        chosen = seen[..., :old].topk(self.kept, -1).indices.sort(-1).values
        last = torch.arange(old, seen.shape[-1], device=seen.device).expand(*seen.shape[:-1], -1)
        stay = torch.cat([chosen, last], -1)
        for cache in (keys, values):
            rows = stay.unsqueeze(-1).expand(-1, -1, -1, cache.shape[-1])
            cache[:, :, : stay.shape[-1]] = cache.gather(2, rows)
        seen[..., : stay.shape[-1]] = seen.gather(2, stay)
        return output


class Stack(torch.nn.Module):
    """Layers with a cache each."""

    def __init__(self, layers: int, kept: int, recent: int) -> None:
        super().__init__()
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(Attention(kept, recent) for _ in range(layers))

    def forward(self, query: torch.Tensor, caches: list[list[torch.Tensor]]) -> torch.Tensor:
        """Return the last output; ``caches`` holds keys, values and attention of each layer."""
        for layer, cache in zip(self.layers, caches, strict=True):
            query = query + layer(query, *cache)
        return query


def step(
    device: str,
    *,
    layers: int,
    batch: int,
    heads: int,
    size: int,
    length: int,
    kept: int,
    recent: int,
) -> Program:
    """Return one step that shortens caches of ``length`` tokens to ``kept + recent``."""
    torch.manual_seed(0)
    with torch.device(device):
        query = torch.randn(batch, heads, size)
        caches = [
            # Apart enough for what was seen that rounding sends no token another way.
            [*torch.randn(2, batch, heads, length, size), 4.0 * torch.rand(batch, heads, length).argsort(-1)]
            for _ in range(layers)
        ]
    caches = [[keys.clone(), values.clone(), seen] for keys, values, seen in caches]
    return Program(Stack(layers, kept, recent).eval(), (query, caches))
