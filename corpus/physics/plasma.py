"""A plasma by particles in cells: charges are spread over a grid, and the grid's field moves them."""

from __future__ import annotations

import math

import torch

from pytest_reinplace import Program


class Plasma(torch.nn.Module):
    """Electrons on a line of cells that closes to a ring; the ions between them stand still."""

    place: torch.Tensor
    speed: torch.Tensor
    density: torch.Tensor
    field: torch.Tensor

    def __init__(self, electrons: int, cells: int, step: float) -> None:
        super().__init__()
        self.step = step
        self.register_buffer("place", torch.rand(electrons) * cells)
        self.register_buffer("speed", torch.randn(electrons) * 0.1)
        self.speed[::2].neg_().add_(1.0)
        self.register_buffer("density", torch.zeros(cells))
        self.register_buffer("field", torch.zeros(cells))

    def deposit(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Spread the charges over the cells left and right; return both, and the share of the right one."""
        cells = len(self.density)
        left = self.place.floor()
        share = self.place - left
        left = left.long().remainder_(cells)
        right = (left + 1) % cells
        self.density.fill_(1.0)
        weight = cells / len(self.place)
        self.density.index_put_((left,), -weight * (1 - share), accumulate=True)
        self.density.index_put_((right,), -weight * share, accumulate=True)
        return left, right, share

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        """Return the field's energy; ``waves`` is ``(cells, cells)``, which sums the charges up."""
        left, right, share = self.deposit()
        torch.matmul(waves, self.density, out=self.field)
        self.field -= self.field.mean()
        push = self.field[left] * (1 - share) + self.field[right] * share
        self.speed.sub_(push, alpha=self.step)
        self.place.add_(self.speed, alpha=self.step).remainder_(len(self.density))
        return 0.5 * self.field.square().sum()


def push(device: str, *, electrons: int, cells: int) -> Program:
    """Return a step of two beams that run against each other."""
    torch.manual_seed(0)
    with torch.device(device):
        waves = torch.tril(torch.ones(cells, cells)) / math.sqrt(cells)
        return Program(Plasma(electrons, cells, 0.1), (waves,))
