"""Cloth by position-based dynamics: every constraint moves its two ends a little, in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Cloth(torch.nn.Module):
    """A net of points with springs between neighbours; the first row is pinned."""

    points: torch.Tensor
    before: torch.Tensor
    inverse: torch.Tensor

    def __init__(self, side: int, rounds: int) -> None:
        super().__init__()
        self.side = side
        self.rounds = rounds
        line = torch.arange(side, dtype=torch.float32)
        grid = torch.stack(torch.meshgrid(line, line, indexing="ij"), -1).view(-1, 2)
        points = torch.cat([grid, 0.01 * torch.rand(side * side, 1)], 1)
        self.register_buffer("points", points)
        self.register_buffer("before", points.clone())
        inverse = torch.ones(side * side, 1)
        inverse[:side] = 0
        self.register_buffer("inverse", inverse)

    def pull(self, edges: torch.Tensor) -> None:
        """Move the ends of ``(2, edges)``, no two of which share a point, to a distance of one."""
        first, second = edges
        way = self.points[second] - self.points[first]
        length = way.norm(dim=1, keepdim=True).clamp_(min=1e-6)
        total = (self.inverse[first] + self.inverse[second]).clamp_(min=1e-6)
        move = way.mul_((length - 1) / (length * total))
        self.points[first] += self.inverse[first] * move
        self.points[second] -= self.inverse[second] * move

    def forward(self, edges: list[torch.Tensor], wind: torch.Tensor) -> torch.Tensor:
        """Return the velocities, ``(points, 3)``; ``edges`` has a tensor a color, ``wind`` is ``(3,)``."""
        velocity = (self.points - self.before).mul_(0.99)
        self.before.copy_(self.points)
        self.points.add_(velocity + wind * self.inverse)
        for _ in range(self.rounds):
            for color in edges:
                self.pull(color)
        floor = self.points[:, 2]
        floor.clamp_(min=-2.0)
        return self.points - self.before


def hang(device: str, *, side: int, rounds: int) -> Program:
    """Return a step of ``side`` by ``side`` points; ``side`` is even."""
    torch.manual_seed(0)
    with torch.device(device):
        number = torch.arange(side * side).view(side, side)
        edges = []
        for grid in (number, number.t()):
            for start in (0, 1):
                first, second = grid[:, start : side - 1 : 2], grid[:, start + 1 :: 2]
                edges.append(torch.stack([first.flatten(), second.flatten()]))
        wind = torch.tensor([0.0, 0.01, -0.02])
        return Program(Cloth(side, rounds), (edges, wind))
