"""Poisson's equation by red-black over-relaxation: one grid, of which every second point is written."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Relaxation(torch.nn.Module):
    """A potential that is zero at its edges, and the charges that it belongs to."""

    potential: torch.Tensor

    def __init__(self, side: int, sweeps: int, factor: float) -> None:
        super().__init__()
        self.sweeps = sweeps
        self.factor = factor
        self.register_buffer("potential", torch.zeros(side, side))

    def relax_half(self, charge: torch.Tensor, row: int, column: int) -> None:
        """Relax every second point of every second row, from ``(row, column)`` on."""
        grid = self.potential
        side = grid.shape[0]
        rows, columns = slice(row, side - 1, 2), slice(column, side - 1, 2)
        above, below = slice(row - 1, side - 2, 2), slice(row + 1, side, 2)
        left, right = slice(column - 1, side - 2, 2), slice(column + 1, side, 2)
        around = grid[above, columns] + grid[below, columns] + grid[rows, left] + grid[rows, right]
        residual = 0.25 * (around + charge[rows, columns]) - grid[rows, columns]
        grid[rows, columns] += self.factor * residual

    def forward(self, charge: torch.Tensor) -> torch.Tensor:
        """Return the potential's energy; ``charge`` is ``(side, side)``."""
        for _ in range(self.sweeps):
            for row, column in ((1, 1), (2, 2), (1, 2), (2, 1)):
                self.relax_half(charge, row, column)
        return (self.potential * charge).sum()


def relax(device: str, *, side: int, sweeps: int) -> Program:
    """Return ``sweeps`` sweeps over a grid of ``side`` (even) by ``side`` points."""
    torch.manual_seed(0)
    with torch.device(device):
        charge = torch.randn(side, side)
        return Program(Relaxation(side, sweeps, 1.5), (charge,))
