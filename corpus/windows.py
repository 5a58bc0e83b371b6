"""Sliding-window inference: overlapping tiles of a large image, weighted and added into one canvas."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Segmentation(torch.nn.Module):
    """A small network for tiles, and what puts its results together."""

    importance: torch.Tensor

    def __init__(self, channels: int, classes: int, tile: int, step: int) -> None:
        super().__init__()
        self.classes, self.tile, self.step = classes, tile, step
        self.network: torch.nn.Sequential = torch.nn.Sequential(
            torch.nn.Conv2d(1, channels, 3, padding=1),
            torch.nn.ReLU(inplace=True),
            torch.nn.Conv2d(channels, classes, 3, padding=1),
        )
        ramp = torch.hann_window(tile, periodic=False) + 0.1
        self.register_buffer("importance", torch.outer(ramp, ramp))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, classes, height, width)`` for ``(batch, 1, height, width)``."""
        batch, _, height, width = image.shape
        canvas: torch.Tensor = image.new_zeros(batch, self.classes, height, width)
        weight = image.new_zeros(height, width)
        for top in range(0, height - self.tile + 1, self.step):
            for left in range(0, width - self.tile + 1, self.step):
                rows, columns = slice(top, top + self.tile), slice(left, left + self.tile)
                result = self.network(image[:, :, rows, columns])
                canvas[:, :, rows, columns] += result * self.importance
                weight[rows, columns] += self.importance
        canvas /= weight
        return canvas


def forward(
    device: str, *, channels: int, classes: int, tile: int, step: int, side: int, batch: int
) -> Program:
    """Return the segmentation of images with sides of ``side`` in tiles of ``tile`` pixels."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Segmentation(channels, classes, tile, step).eval()
        return Program(model, (torch.randn(batch, 1, side, side),))
