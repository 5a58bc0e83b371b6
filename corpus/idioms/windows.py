"""Sliding-window inference: overlapping tiles of a large image, weighted and added into one canvas."""

from __future__ import annotations

import itertools

import torch

from pytest_reinplace import Program


class Segmentation(torch.nn.Module):
    """A small network for tiles, and what puts its results together."""

    importance: torch.Tensor
    weight: torch.Tensor

    def __init__(self, channels: int, classes: int, tile: int, step: int, side: int) -> None:
        super().__init__()
        self.classes: int = classes
        self.tile: int = tile
        self.step: int = step
        self.network: torch.nn.Sequential = torch.nn.Sequential(
            torch.nn.Conv2d(1, channels, 3, padding=1),
            torch.nn.ReLU(inplace=True),
            torch.nn.Conv2d(channels, classes, 3, padding=1),
        )
        ramp = torch.hann_window(tile, periodic=False) + 0.1
        self.register_buffer("importance", torch.outer(ramp, ramp))
        self.register_buffer("weight", torch.zeros(side, side))
        for rows, columns in self.tiles(side):
            self.weight[rows, columns] += self.importance

    def tiles(self, side: int) -> list[tuple[slice, slice]]:
        """Return rows and columns of every tile of an image."""
        slices = [slice(start, start + self.tile) for start in range(0, side - self.tile + 1, self.step)]
        return list(itertools.product(slices, slices))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, classes, side, side)`` for ``(batch, 1, side, side)``."""
        batch, _, *size = image.shape
        canvas: torch.Tensor = image.new_zeros(batch, self.classes, *size)
        for rows, columns in self.tiles(size[0]):
            canvas[:, :, rows, columns] += self.network(image[:, :, rows, columns]) * self.importance
        canvas /= self.weight
        return canvas


def forward(
    device: str, *, channels: int, classes: int, tile: int, step: int, side: int, batch: int
) -> Program:
    """Return the segmentation of images with sides of ``side`` in tiles of ``tile`` pixels."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Segmentation(channels, classes, tile, step, side).eval()
        return Program(model, (torch.randn(batch, 1, side, side),))
