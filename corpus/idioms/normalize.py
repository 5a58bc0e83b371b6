"""Images normalized in place, channel by channel, in front of the patches of a vision transformer."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Patches(torch.nn.Module):
    """Normalization of the caller's images, and their projection to patches."""

    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(self, channels: int, patch: int, hidden: int) -> None:
        super().__init__()
        self.project: torch.nn.Conv2d = torch.nn.Conv2d(channels, hidden, patch, stride=patch)
        self.register_buffer("mean", torch.linspace(0.4, 0.5, channels))
        self.register_buffer("deviation", torch.linspace(0.9, 1.1, channels))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, patches, hidden)``; normalizes ``(batch, channels, side, side)``."""
        for number, channel in enumerate(images.unbind(1)):
            channel.sub_(self.mean[number]).div_(self.deviation[number])
        # The contrast of each image by itself, as in per-image standardization.
        pixels = images.flatten(1)
        pixels.sub_(pixels.mean(1, keepdim=True)).div_(pixels.std(1, keepdim=True))
        output: torch.Tensor = self.project(images).flatten(2).transpose(1, 2)
        return output


def forward(device: str, *, channels: int, patch: int, hidden: int, side: int, batch: int) -> Program:
    """Return the patches of ``batch`` images with sides of ``side`` pixels."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Patches(channels, patch, hidden).eval()
        return Program(model, (torch.rand(batch, channels, side, side),))
