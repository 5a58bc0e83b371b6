"""Decoders that work in tiles, and panoramas: neighbours are blended into each other in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class TiledDecoder(torch.nn.Module):
    """Latent tiles are decoded one by one, faded into those above and to the left, and cropped together."""

    def __init__(self, channels: int, hidden: int, tile: int, overlap: int) -> None:
        super().__init__()
        self.tile = tile
        self.overlap = overlap
        self.first: torch.nn.Conv2d = torch.nn.Conv2d(channels, hidden, 3, padding=1)
        self.last: torch.nn.Conv2d = torch.nn.Conv2d(hidden, 3, 3, padding=1)

    def decode(self, latents: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, 3, 2 * height, 2 * width)``."""
        hidden = torch.nn.functional.silu(self.first(latents))
        hidden = torch.nn.functional.interpolate(hidden, scale_factor=2.0)
        image: torch.Tensor = self.last(hidden)
        return image

    def fade(self, before: torch.Tensor, tile: torch.Tensor, axis: int) -> torch.Tensor:
        """Fade the end of one tile into the beginning of the next along an axis, line by line."""
        extent = min(before.shape[axis], tile.shape[axis], 2 * self.overlap)
        for line in range(extent):
            share = line / extent
            above = before.select(axis, before.shape[axis] - extent + line)
            current = tile.select(axis, line)
            current.copy_(above * (1 - share) + current * share)
        return tile

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, 3, 2 * side, 2 * side)`` for ``(batch, channels, side, side)``."""
        step = self.tile - self.overlap
        side = latents.shape[2]
        rows = [
            [
                self.decode(latents[:, :, top : top + self.tile, left : left + self.tile])
                for left in range(0, side - self.overlap, step)
            ]
            for top in range(0, side - self.overlap, step)
        ]
        lines = []
        for i, row in enumerate(rows):
            line = []
            for j, tile in enumerate(row):
                if i:
                    tile = self.fade(rows[i - 1][j], tile, 2)
                if j:
                    tile = self.fade(row[j - 1], tile, 3)
                line.append(tile[:, :, : 2 * step, : 2 * step])
            lines.append(torch.cat(line, 3))
        return torch.cat(lines, 2)


class MultiDiffusion(torch.nn.Module):
    """Overlapping views of a panorama, each denoised, added up with how often each pixel was seen."""

    value: torch.Tensor
    count: torch.Tensor

    def __init__(self, channels: int, view: int, stride: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.view = view
        self.stride = stride
        self.network: torch.nn.Conv2d = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.register_buffer("value", torch.zeros(shape))
        self.register_buffer("count", torch.zeros(shape))

    def forward(self, latents: torch.Tensor, steps: int) -> torch.Tensor:
        """Return ``latents``, ``(batch, channels, side, width)``, after ``steps`` steps in place."""
        width = latents.shape[3]
        for _ in range(steps):
            self.count.zero_()
            self.value.zero_()
            for left in range(0, width - self.view + 1, self.stride):
                part = latents[:, :, :, left : left + self.view]
                denoised = part - 0.1 * self.network(part)
                self.value[:, :, :, left : left + self.view] += denoised
                self.count[:, :, :, left : left + self.view] += 1
            latents.copy_(torch.where(self.count > 0, self.value / self.count, self.value))
        return latents


def decode(
    device: str, *, batch: int, channels: int, hidden: int, side: int, tile: int, overlap: int
) -> Program:
    """Return a decoded image whose tiles were faded into each other."""
    torch.manual_seed(0)
    with torch.device(device):
        model = TiledDecoder(channels, hidden, tile, overlap).eval()
        return Program(model, (torch.randn(batch, channels, side, side),))


def panorama(
    device: str, *, batch: int, channels: int, side: int, width: int, view: int, stride: int, steps: int
) -> Program:
    """Return the latents of a panorama after some steps."""
    torch.manual_seed(0)
    shape = (batch, channels, side, width)
    with torch.device(device):
        model = MultiDiffusion(channels, view, stride, shape).eval()
        return Program(model, (torch.randn(shape), steps))
