"""Recursive filters sample by sample, and an adaptive one that learns an echo while it removes it."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Biquads(torch.nn.Module):
    """A cascade of sections of second order for many channels, with two states each."""

    coefficients: torch.Tensor
    states: torch.Tensor

    def __init__(self, sections: int, channels: int) -> None:
        super().__init__()
        self.register_buffer("coefficients", 0.2 * torch.randn(sections, 5, 1))
        self.register_buffer("states", torch.zeros(sections, 2, channels))

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """Return ``signal``, ``(samples, channels)``, filtered in place."""
        for sample in signal:
            for (b0, b1, b2, a1, a2), state in zip(self.coefficients, self.states, strict=True):
                output = b0 * sample + state[0]
                state[0] = b1 * sample - a1 * output + state[1]
                state[1] = b2 * sample - a2 * output
                sample.copy_(output)
        return signal


class EchoCanceller(torch.nn.Module):
    """Normalized least mean squares: the last samples of the far end, and the echo's path so far."""

    history: torch.Tensor
    path: torch.Tensor

    def __init__(self, channels: int, taps: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.register_buffer("history", torch.zeros(channels, taps))
        self.register_buffer("path", torch.zeros(channels, taps))

    def forward(self, far: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
        """Return what is left of ``near`` without the echo of ``far``, both ``(channels, samples)``."""
        clean = torch.empty_like(near)
        for n in range(near.shape[1]):
            self.history.copy_(self.history.roll(1, 1))
            self.history[:, 0] = far[:, n]
            error = near[:, n] - (self.path * self.history).sum(1)
            power = self.history.square().sum(1) + 1e-3
            self.path.addcmul_((self.rate * error / power).unsqueeze(1), self.history)
            clean[:, n] = error
        return clean


def cascade(device: str, *, sections: int, channels: int, samples: int) -> Program:
    """Return ``samples`` samples of all channels, filtered."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Biquads(sections, channels), (torch.randn(samples, channels),))


def cancel(device: str, *, channels: int, taps: int, samples: int) -> Program:
    """Return ``samples`` samples of all channels without their echoes."""
    torch.manual_seed(0)
    with torch.device(device):
        far, near = torch.randn(2, channels, samples)
        return Program(EchoCanceller(channels, taps, 0.5), (far.clone(), near.clone()))
