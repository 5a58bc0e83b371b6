"""Autograd functions by hand: the backward makes its gradient with a factory function and writes into it."""

from __future__ import annotations

from typing import Any

import torch

from pytest_reinplace import Program


class Select(torch.autograd.Function):
    """Rows of a sequence, ``tokens[:, start:stop]`` and ``tokens[:, index]``, as one tensor."""

    @staticmethod
    def forward(ctx: Any, tokens: torch.Tensor, start: int, stop: int, index: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, stop - start + len(index), hidden)``."""
        ctx.save_for_backward(index)
        ctx.shape, ctx.window = tokens.shape, (start, stop)
        result = tokens.new_empty(tokens.shape[0], stop - start + len(index), tokens.shape[2])
        result[:, : stop - start] = tokens[:, start:stop]
        result[:, stop - start :] = tokens[:, index]
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """Return zeros of the sequence's shape, with the window copied and the chosen rows added."""
        (gradient,) = gradients
        (index,) = ctx.saved_tensors
        start, stop = ctx.window
        result = gradient.new_zeros(ctx.shape)
        result[:, start:stop] = gradient[:, : stop - start]
        result.index_add_(1, index, gradient[:, stop - start :])
        return result, None, None, None


class Encoder(torch.nn.Module):
    """Layers that project only some rows of the sequence, and add them up."""

    def __init__(self, layers: int, hidden: int, window: int) -> None:
        super().__init__()
        self.window = window
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            torch.nn.Linear(hidden, hidden) for _ in range(layers)
        )

    def forward(self, tokens: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, hidden)`` for ``(batch, length, hidden)``."""
        tokens = tokens * tokens.shape[-1] ** 0.5  # as embeddings are scaled
        results = []
        for number, layer in enumerate(self.layers):
            start = number * self.window
            chosen = Select.apply(tokens, start, start + self.window, index)  # type: ignore[no-untyped-call]
            results.append(torch.nn.functional.silu(layer(chosen)).mean(1))
        return torch.stack(results).sum(0)


def training(
    device: str, *, layers: int, hidden: int, length: int, window: int, chosen: int, batch: int, dtype: str
) -> Program:
    """Return forward and backward of ``layers`` windows of ``window`` rows beside ``chosen`` others."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Encoder(layers, hidden, window).to(getattr(torch, dtype))
        tokens = torch.randn(batch, length, hidden, dtype=getattr(torch, dtype)) * hidden**-0.5
        index = torch.randint(0, length, (chosen,))
    return Program(model, (tokens.requires_grad_(), index))
