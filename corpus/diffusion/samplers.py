"""Samplers that step latents in place: DDIM with an inpainting mask, and a multistep one with a history."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Network(torch.nn.Module):
    """A small network that guesses noise from latents and a level."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.first: torch.nn.Conv2d = torch.nn.Conv2d(channels, hidden, 3, padding=1)
        self.last: torch.nn.Conv2d = torch.nn.Conv2d(hidden, channels, 3, padding=1)

    def forward(self, latents: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """Return noise of the shape of ``latents``, ``(batch, channels, side, side)``."""
        hidden = torch.nn.functional.silu(self.first(latents) + level, inplace=True)
        noise: torch.Tensor = self.last(hidden)
        return noise


class Inpainting(torch.nn.Module):
    """DDIM; what the mask leaves free is taken from the known image, noised to the same level."""

    alphas: torch.Tensor
    batch: torch.Tensor

    def __init__(self, network: Network, steps: int, shape: tuple[int, ...], guidance: float) -> None:
        super().__init__()
        self.network = network
        self.steps = steps
        self.guidance = guidance
        self.register_buffer("alphas", torch.linspace(0.1, 0.99, steps + 1))
        self.register_buffer("batch", torch.zeros(2 * shape[0], *shape[1:]))

    def forward(
        self, latents: torch.Tensor, known: torch.Tensor, noise: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """Return ``latents``, ``(batch, channels, side, side)``, which are stepped in place."""
        count = len(latents)
        for step in range(self.steps):
            now, following = self.alphas[step], self.alphas[step + 1]
            self.batch[:count] = latents
            self.batch[count:] = latents
            plain, guided = self.network(self.batch, now).chunk(2)
            guess = plain.add_(guided - plain, alpha=self.guidance)
            image = (latents - (1 - now).sqrt() * guess).div_(now.sqrt()).clamp_(-1, 1)
            latents.copy_(following.sqrt() * image + (1 - following).sqrt() * guess)
            noised = following.sqrt() * known + (1 - following).sqrt() * noise
            latents.mul_(mask).add_(noised * (1 - mask))
        return latents


class Multistep(torch.nn.Module):
    """A solver of second order that keeps its last two guesses, and an ancestral step's noise, in buffers."""

    levels: torch.Tensor
    history: torch.Tensor

    def __init__(self, network: Network, steps: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.network = network
        self.steps = steps
        self.register_buffer("levels", torch.linspace(3.0, -3.0, steps + 1))
        self.register_buffer("history", torch.zeros(2, *shape))

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        """Return ``latents``, ``(batch, channels, side, side)``, which are stepped in place."""
        alpha, sigma = self.levels.neg().sigmoid().sqrt(), self.levels.sigmoid().sqrt()
        logs = alpha.log() - sigma.log()
        for step in range(self.steps):
            noise = self.network(latents, self.levels[step])
            self.history[0] = self.history[1]
            self.history[1] = (latents - sigma[step] * noise) / alpha[step]
            width = logs[step + 1] - logs[step]
            guess = self.history[1]
            if step:
                ratio = (logs[step] - logs[step - 1]) / width
                guess = guess + (self.history[1] - self.history[0]) / (2 * ratio)
            latents.mul_(sigma[step + 1] / sigma[step])
            latents.sub_(alpha[step + 1] * torch.expm1(-width) * guess)
        return latents


def inpaint(device: str, *, batch: int, channels: int, side: int, hidden: int, steps: int) -> Program:
    """Return latents after ``steps`` steps with guidance and a mask."""
    torch.manual_seed(0)
    shape = (batch, channels, side, side)
    with torch.device(device):
        model = Inpainting(Network(channels, hidden), steps, shape, 2.0).eval()
        mask = (torch.rand(batch, 1, side, side) < 0.5).float()
        return Program(model, (torch.randn(shape), torch.rand(shape), torch.randn(shape), mask))


def multistep(device: str, *, batch: int, channels: int, side: int, hidden: int, steps: int) -> Program:
    """Return latents after ``steps`` steps of second order."""
    torch.manual_seed(0)
    shape = (batch, channels, side, side)
    with torch.device(device):
        model = Multistep(Network(channels, hidden), steps, shape).eval()
        return Program(model, (torch.randn(shape),))
