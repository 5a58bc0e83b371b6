"""State-space layers in decoding: each keeps its last inputs in a buffer that is shifted by one a step."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Convolution(torch.nn.Module):
    """A causal depthwise convolution that sees one token at a time."""

    def __init__(self, channels: int, window: int) -> None:
        super().__init__()
        self.project: torch.nn.Linear = torch.nn.Linear(channels, channels)
        self.weight: torch.nn.Parameter = torch.nn.Parameter(torch.randn(window, 1, channels))

    def forward(self, token: torch.Tensor, recent: torch.Tensor) -> torch.Tensor:
        """Return the output for ``(batch, channels)``; ``recent`` is ``(window, batch, channels)``."""
        recent[:-1] = recent[1:].clone()
        recent[-1] = self.project(token)
        return torch.nn.functional.silu((recent * self.weight).sum(0))


class Stack(torch.nn.Module):
    """Convolutions, each with a buffer of its own."""

    def __init__(self, layers: int, channels: int, window: int) -> None:
        super().__init__()
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Convolution(channels, window) for _ in range(layers)
        )

    def forward(self, token: torch.Tensor, state: list[torch.Tensor]) -> torch.Tensor:
        """Return the output of the last layer and shift every buffer."""
        for layer, recent in zip(self.layers, state, strict=True):
            token = token + layer(token, recent)
        return token


def step(device: str, *, layers: int, channels: int, window: int, batch: int, dtype: str) -> Program:
    """Return one decode step of ``layers`` convolutions over the last ``window`` tokens."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Stack(layers, channels, window).to(getattr(torch, dtype)).eval()
        token = torch.randn(batch, channels, dtype=getattr(torch, dtype))
        state = [torch.randn(window, batch, channels, dtype=token.dtype) for _ in range(layers)]
    return Program(model, (token, state))
