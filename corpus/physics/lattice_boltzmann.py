"""A lattice Boltzmann fluid (D2Q9): populations collide, stream on and bounce off obstacles."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

DIRECTIONS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
OPPOSITE = (0, 3, 4, 1, 2, 7, 8, 5, 6)
WEIGHTS = (4 / 9, *(1 / 9,) * 4, *(1 / 36,) * 4)


class Fluid(torch.nn.Module):
    """Nine populations of each point, and the obstacle in their way."""

    populations: torch.Tensor
    obstacle: torch.Tensor
    directions: torch.Tensor
    weights: torch.Tensor

    def __init__(self, height: int, width: int, viscosity: float) -> None:
        super().__init__()
        self.rate: float = 1 / (3 * viscosity + 0.5)
        self.register_buffer("directions", torch.tensor(DIRECTIONS, dtype=torch.float32))
        self.register_buffer("weights", torch.tensor(WEIGHTS))
        noise = 1 + 0.01 * torch.rand(9, height, width)
        self.register_buffer("populations", self.weights.view(9, 1, 1) * noise)
        row, column = torch.arange(height).view(-1, 1), torch.arange(width)
        inside = (row - height // 2) ** 2 + (column - width // 4) ** 2 < (height // 5) ** 2
        self.register_buffer("obstacle", inside)

    def forward(self, inflow: torch.Tensor) -> torch.Tensor:
        """Return the fluid's velocity, ``(2, height, width)``; ``inflow`` is ``(height,)``, at the left."""
        f = self.populations
        for number, (x, y) in enumerate(DIRECTIONS):
            f[number] = torch.roll(f[number], (y, x), (0, 1))
        bounced = f[:, self.obstacle][OPPOSITE, :]
        density = f.sum(0)
        velocity = torch.einsum("qd,qhw->dhw", self.directions, f) / density
        velocity[0, :, 0] = inflow
        velocity[1, :, 0] = 0
        along = torch.einsum("qd,dhw->qhw", self.directions, velocity)
        square = velocity.square().sum(0)
        equilibrium = self.weights.view(9, 1, 1) * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * square)
        f += self.rate * (equilibrium - f)
        f[:, self.obstacle] = bounced
        velocity[:, self.obstacle] = 0
        return velocity


class Masked(Fluid):
    """The same with the obstacle as a mask of the grid's size, and streams that are rolled as one."""

    def forward(self, inflow: torch.Tensor) -> torch.Tensor:
        """Return the fluid's speed, ``(height, width)``; ``inflow`` is ``(height,)``, at the left."""
        f = self.populations
        bounced = f[list(OPPOSITE)]
        f.copy_(torch.stack([f[n].roll((y, x), (0, 1)) for n, (x, y) in enumerate(DIRECTIONS)]))
        f[:, :, -1] = f[:, :, -2]
        density = f.sum(0)
        velocity = torch.einsum("qd,qhw->dhw", self.directions, f).div_(density)
        velocity[0, :, 0] = inflow
        velocity.masked_fill_(self.obstacle, 0)
        along = torch.einsum("qd,dhw->qhw", self.directions, velocity)
        square = velocity.square().sum(0)
        equilibrium = self.weights.view(9, 1, 1) * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * square)
        f.lerp_(equilibrium, self.rate)
        torch.where(self.obstacle, bounced, f, out=f)
        return square.sqrt()


def stream(device: str, *, height: int, width: int, masked: bool) -> Program:
    """Return one step of a channel with a cylinder in it."""
    torch.manual_seed(0)
    with torch.device(device):
        fluid = (Masked if masked else Fluid)(height, width, 0.05)
        return Program(fluid, (torch.full((height,), 0.04),))
