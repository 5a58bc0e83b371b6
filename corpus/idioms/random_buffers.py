"""Random numbers drawn into buffers that live on: the values of the drawing replace what was there."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Uniform(torch.nn.Module):
    """A buffer filled anew at each call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``x + 1`` after ``x`` was filled with numbers from 0 to 1."""
        x.uniform_()
        return x + 1


class NoisyLinear(torch.nn.Module):
    """A linear layer with noise on its weights and some of its connections dropped, both kept for later."""

    noise: torch.Tensor
    kept: torch.Tensor

    def __init__(self, hidden: int, keep: float) -> None:
        super().__init__()
        self.keep = keep
        self.weight: torch.nn.Parameter = torch.nn.Parameter(torch.randn(hidden, hidden) * hidden**-0.5)
        self.scale: torch.nn.Parameter = torch.nn.Parameter(torch.rand(hidden, hidden) * 0.1)
        self.register_buffer("noise", torch.zeros(hidden, hidden))
        self.register_buffer("kept", torch.zeros(hidden, hidden))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return ``rows``, ``(rows, hidden)``, times the weights with newly drawn noise."""
        self.noise.normal_()
        self.kept.bernoulli_(self.keep)
        weight = self.weight + self.scale * self.noise
        return torch.nn.functional.linear(rows, weight * self.kept)


class LockedDropout(torch.nn.Module):
    """Recurrent steps under dropout masks that are drawn once for all of them, each layer's in one buffer."""

    masks: torch.Tensor

    def __init__(self, layers: int, batch: int, hidden: int, keep: float) -> None:
        super().__init__()
        self.keep = keep
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            torch.nn.Linear(2 * hidden, hidden) for _ in range(layers)
        )
        self.register_buffer("masks", torch.zeros(layers, batch, hidden))

    def forward(self, tokens: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Return the last layer's outputs ``(steps, batch, hidden)``; ``states`` is moved along in place."""
        for mask in self.masks:
            mask.bernoulli_(self.keep).div_(self.keep)
        outputs = []
        for token in tokens:
            for layer, mask, state in zip(self.layers, self.masks, states, strict=True):
                state.copy_(torch.tanh(layer(torch.cat([token * mask, state], 1))))
                token = state
            outputs.append(token.clone())
        return torch.stack(outputs)


def uniform(device: str, *, rows: int, cols: int) -> Program:
    """Return a call that fills a buffer of ``rows`` times ``cols`` numbers."""
    with torch.device(device):
        return Program(Uniform(), (torch.zeros(rows, cols),))


def noisy(device: str, *, layers: int, hidden: int, rows: int, keep: float) -> Program:
    """Return ``layers`` noisy layers on ``rows`` rows."""
    torch.manual_seed(0)
    with torch.device(device):
        model = torch.nn.Sequential(*(NoisyLinear(hidden, keep) for _ in range(layers)))
        return Program(model, (torch.randn(rows, hidden),))


def dropout(device: str, *, layers: int, hidden: int, batch: int, steps: int, keep: float) -> Program:
    """Return ``steps`` steps of ``layers`` recurrent layers, whose masks are drawn first."""
    torch.manual_seed(0)
    with torch.device(device):
        model = LockedDropout(layers, batch, hidden, keep)
        tokens, states = torch.randn(steps, batch, hidden), torch.zeros(layers, batch, hidden)
    return Program(model, (tokens, states))
