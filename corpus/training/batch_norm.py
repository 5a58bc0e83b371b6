"""A residual block of a convolutional network in training: batch norm updates its statistics in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Block(torch.nn.Module):
    """Two convolutions, each before a batch norm, and a shortcut without parameters; halves the image."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        wide = 2 * channels
        self.first: torch.nn.Conv2d = torch.nn.Conv2d(channels, wide, 3, stride=2, padding=1, bias=False)
        self.first_norm: torch.nn.BatchNorm2d = torch.nn.BatchNorm2d(wide)
        self.second: torch.nn.Conv2d = torch.nn.Conv2d(wide, wide, 3, padding=1, bias=False)
        self.second_norm: torch.nn.BatchNorm2d = torch.nn.BatchNorm2d(wide)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, 2 * channels, height / 2, width / 2)``; updates the statistics of both norms."""
        result = torch.nn.functional.relu(self.first_norm(self.first(images)), inplace=True)
        result = self.second_norm(self.second(result))
        shortcut = torch.zeros_like(result)
        start = images.shape[1] // 2
        shortcut[:, start : start + images.shape[1]] = images[:, :, ::2, ::2]
        shortcut += result
        return torch.nn.functional.relu(shortcut, inplace=True)


class Training(torch.nn.Module):
    """Blocks, and how much each element of what they return counts.

    A batch norm's outputs have the same sum whatever goes into it: without weights its gradients would be
    nothing but rounding.
    """

    weight: torch.Tensor

    def __init__(self, blocks: int, channels: int, images: torch.Size) -> None:
        super().__init__()
        self.blocks: torch.nn.Sequential = torch.nn.Sequential(
            *(Block(channels << number) for number in range(blocks))
        )
        batch, _, height, width = images
        shape = (batch, channels << blocks, height >> blocks, width >> blocks)
        # The gradient of a convolution's weight is a sum over the pixels of all images.
        self.register_buffer("weight", torch.randn(shape) * (batch * shape[2] * shape[3]) ** -0.5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the loss, one number for each element; updates the statistics of all norms."""
        result: torch.Tensor = self.blocks(images)
        return result * self.weight


def training(device: str, *, blocks: int, channels: int, size: int, batch: int) -> Program:
    """Return forward and backward of ``blocks`` residual blocks in training mode."""
    torch.manual_seed(0)
    with torch.device(device):
        images = torch.randn(batch, channels, size, size)
        model = Training(blocks, channels, images.shape).train()
    return Program(model, (images,))
