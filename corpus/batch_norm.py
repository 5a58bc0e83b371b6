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


def training(device: str, *, blocks: int, channels: int, size: int, batch: int) -> Program:
    """Return forward and backward of ``blocks`` residual blocks in training mode."""
    torch.manual_seed(0)
    with torch.device(device):
        model = torch.nn.Sequential(*(Block(channels << number) for number in range(blocks))).train()
        images = torch.randn(batch, channels, size, size)
    return Program(model, (images,))
