"""The heat equation by Jacobi's method: two grids that take turns, and the interior written by slices."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Plate(torch.nn.Module):
    """A plate, and a second grid of the same size that a sweep is written into."""

    grid: torch.Tensor
    spare: torch.Tensor

    def __init__(self, side: int, sweeps: int, rate: float) -> None:
        super().__init__()
        self.sweeps = sweeps
        self.rate = rate
        self.register_buffer("grid", torch.rand(side, side))
        self.register_buffer("spare", torch.zeros(side, side))

    def forward(self, hot: torch.Tensor) -> torch.Tensor:
        """Return the largest change of the last sweep; ``hot`` is ``(side,)``, the upper edge."""
        old, new = self.grid, self.spare
        old[0] = hot
        new.copy_(old)
        for _ in range(self.sweeps):
            middle = old[1:-1, 1:-1]
            around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
            new[1:-1, 1:-1] = middle + self.rate * (around - 4 * middle)
            # Insulated on the left and on the right.
            new[:, 0] = new[:, 1]
            new[:, -1] = new[:, -2]
            old, new = new, old
        change = (old - new).abs().max()
        if self.sweeps % 2:
            self.grid.copy_(self.spare)
        return change


def diffuse(device: str, *, side: int, sweeps: int) -> Program:
    """Return ``sweeps`` explicit steps on a plate of ``side`` by ``side`` points."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Plate(side, sweeps, 0.2), (torch.ones(side),))
