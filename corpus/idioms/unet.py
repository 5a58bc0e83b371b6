"""A U-Net: on the way up, skipped and upsampled features are written side by side into a fresh buffer."""

from __future__ import annotations

import itertools

import torch

from pytest_reinplace import Program


class Block(torch.nn.Module):
    """Norm, activation and convolution, shifted by the embedding of the noise level."""

    def __init__(self, channels: int, wide: int, embedding: int) -> None:
        super().__init__()
        self.norm: torch.nn.GroupNorm = torch.nn.GroupNorm(2, channels)
        self.convolution: torch.nn.Conv2d = torch.nn.Conv2d(channels, wide, 3, padding=1)
        self.shift: torch.nn.Linear = torch.nn.Linear(embedding, wide)

    def forward(self, images: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, wide, height, width)``."""
        result: torch.Tensor = self.convolution(torch.nn.functional.silu(self.norm(images)))
        result += self.shift(level)[:, :, None, None]
        return result


class Network(torch.nn.Module):
    """Blocks down to smaller images, and up again."""

    def __init__(self, levels: int, channels: int) -> None:
        super().__init__()
        sizes = [channels << level for level in range(levels + 1)]
        self.first: torch.nn.Conv2d = torch.nn.Conv2d(4, channels, 3, padding=1)
        self.down: torch.nn.ModuleList = torch.nn.ModuleList(
            Block(size, wide, channels) for size, wide in itertools.pairwise(sizes)
        )
        self.up: torch.nn.ModuleList = torch.nn.ModuleList(
            Block(size + wide, size, channels) for size, wide in itertools.pairwise(sizes)
        )
        self.last: torch.nn.Conv2d = torch.nn.Conv2d(channels, 4, 3, padding=1)

    def forward(self, images: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """Return the noise in ``(batch, 4, height, width)``; ``level`` is ``(batch, channels)``."""
        images = self.first(images)
        skipped = []
        for block in self.down:
            skipped.append(images)
            images = torch.nn.functional.avg_pool2d(block(images, level), 2)
        for block, skip in zip(reversed(self.up), reversed(skipped), strict=True):
            images = block(self.joined(skip, images), level)
        output: torch.Tensor = self.last(images)
        return output

    @staticmethod
    def joined(skip: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
        """Return ``skip`` and the upsampled ``images`` beside each other, in a buffer made for both."""
        batch, channels, height, width = skip.shape
        result = skip.new_empty(batch, channels + images.shape[1], height, width)
        result[:, :channels] = skip
        result[:, channels:] = torch.nn.functional.interpolate(images, scale_factor=2.0, mode="nearest")
        return result


def denoise(device: str, *, levels: int, channels: int, size: int, batch: int, dtype: str) -> Program:
    """Return one denoising step of latent images with sides of ``size``."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Network(levels, channels).to(getattr(torch, dtype)).eval()
        images = torch.randn(batch, 4, size, size, dtype=getattr(torch, dtype))
        return Program(model, (images, torch.randn(batch, channels, dtype=images.dtype)))
