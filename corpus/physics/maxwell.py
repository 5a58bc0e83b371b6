"""Maxwell's equations on Yee's grid: electric and magnetic fields are advanced in turn, in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Fields(torch.nn.Module):
    """Two components of the magnetic field, one of the electric, on grids that are half a cell apart."""

    electric: torch.Tensor
    across: torch.Tensor
    along: torch.Tensor
    permittivity: torch.Tensor

    def __init__(self, side: int, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.register_buffer("electric", torch.zeros(side, side))
        self.register_buffer("across", torch.zeros(side, side - 1))
        self.register_buffer("along", torch.zeros(side - 1, side))
        self.register_buffer("permittivity", torch.ones(side, side))
        self.permittivity[side // 2 :] = 2.25

    def forward(self, pulse: torch.Tensor) -> torch.Tensor:
        """Return the electric field at one point over time, ``(steps,)``; ``pulse`` is its source."""
        ez, hx, hy = self.electric, self.across, self.along
        probe = torch.zeros_like(pulse)
        for step in range(self.steps):
            hx -= 0.5 * (ez[:, 1:] - ez[:, :-1])
            hy += 0.5 * (ez[1:, :] - ez[:-1, :])
            # Absorbing edges of first order want what stood beside them.
            left, right = ez[1, :].clone(), ez[-2, :].clone()
            curl = hy[1:, 1:-1] - hy[:-1, 1:-1] - (hx[1:-1, 1:] - hx[1:-1, :-1])
            ez[1:-1, 1:-1] += 0.5 * curl / self.permittivity[1:-1, 1:-1]
            ez[0, :] = left - 0.33 * (ez[1, :] - ez[0, :])
            ez[-1, :] = right - 0.33 * (ez[-2, :] - ez[-1, :])
            ez[3, 3] += pulse[step]
            probe[step] = ez[-4, -4]
        return probe


def advance(device: str, *, side: int, steps: int) -> Program:
    """Return ``steps`` steps of a field on ``side`` by ``side`` points."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Fields(side, steps), (torch.randn(steps),))
