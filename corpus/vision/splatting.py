"""Pixels and points thrown forwards: colors summed where they land, the nearest point kept at each pixel."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Splat(torch.nn.Module):
    """Forward warping for frame interpolation: each pixel is spread over the four that it lands between."""

    def forward(self, frame: torch.Tensor, flow: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, channels, height, width)`` frames, moved by ``(batch, 2, height, width)``."""
        batch, channels, height, width = frame.shape
        x = flow[:, 0] + torch.arange(width, device=frame.device)
        y = flow[:, 1] + torch.arange(height, device=frame.device).unsqueeze(1)
        left, top = x.floor(), y.floor()
        weighted = torch.cat([frame * weight, weight], 1).flatten(2)
        total = torch.zeros_like(weighted)
        for right, below in ((0, 0), (0, 1), (1, 0), (1, 1)):
            column, row = left + right, top + below
            share = (1 - (x - column).abs()) * (1 - (y - row).abs())
            inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
            place = (row * width + column).masked_fill_(~inside, 0).long().flatten(1)
            amount = weighted * (share * inside).flatten(1).unsqueeze(1)
            total.scatter_add_(2, place.unsqueeze(1).expand_as(amount), amount)
        norm = total[:, -1:].clone()
        norm[norm == 0] = 1
        return (total[:, :-1] / norm).view(batch, channels, height, width)


class Renderer(torch.nn.Module):
    """A depth buffer and an image that points are drawn into; the nearest point of each pixel is seen."""

    depth: torch.Tensor
    image: torch.Tensor

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side
        self.register_buffer("depth", torch.zeros(side * side))
        self.register_buffer("image", torch.zeros(side * side, 3))

    def forward(self, points: torch.Tensor, colors: torch.Tensor, camera: torch.Tensor) -> torch.Tensor:
        """Return the image, ``(side, side, 3)``, of ``(points, 3)`` seen by a ``(3, 4)`` camera."""
        seen = points @ camera[:, :3].t() + camera[:, 3]
        distance = seen[:, 2]
        pixel = (seen[:, :2] / distance.unsqueeze(1)).mul_(self.side).floor_().long()
        inside = ((pixel >= 0) & (pixel < self.side)).all(1)
        place = torch.where(inside, pixel[:, 1] * self.side + pixel[:, 0], 0)
        distance = distance.masked_fill(~inside, 1e6)
        self.depth.fill_(1e6)
        self.depth.scatter_reduce_(0, place, distance, "amin")
        nearest = (distance == self.depth[place]) & inside
        self.image.fill_(1.0)
        self.image[place] = torch.where(nearest.unsqueeze(1), colors, self.image[place])
        fog = (self.depth < 1e6).unsqueeze(1) * torch.exp(-0.1 * self.depth).unsqueeze(1)
        self.image.mul_(fog).add_(1 - fog)
        return self.image.view(self.side, self.side, 3)


def splat(device: str, *, batch: int, channels: int, height: int, width: int) -> Program:
    """Return frames that were moved along their flow."""
    torch.manual_seed(0)
    with torch.device(device):
        frame = torch.rand(batch, channels, height, width)
        flow = torch.randn(batch, 2, height, width)
        return Program(Splat(), (frame, flow, torch.rand(batch, 1, height, width) + 0.1))


def render(device: str, *, points: int, side: int) -> Program:
    """Return an image of points, no two of which share a pixel, so that the image is one and the same."""
    torch.manual_seed(0)
    with torch.device(device):
        place = torch.randperm(side * side)[:points]
        depth = torch.rand(points) + 1
        x, y = (place % side + 0.5) / side, (place // side + 0.5) / side
        cloud = torch.stack([x * depth, y * depth, depth], 1)
        return Program(Renderer(side), (cloud, torch.rand(points, 3), torch.eye(3, 4)))
