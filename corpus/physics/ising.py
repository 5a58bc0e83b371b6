"""Ising spins by Metropolis on a checkerboard: half of the spins is flipped at a time."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Spins(torch.nn.Module):
    """Lattices of spins, one for each temperature, and how often each magnetization was seen."""

    spins: torch.Tensor
    inverse: torch.Tensor
    board: torch.Tensor
    histogram: torch.Tensor

    def __init__(self, side: int, temperatures: int, bins: int) -> None:
        super().__init__()
        spins = torch.randint(0, 2, (temperatures, side, side)) * 2.0 - 1
        self.register_buffer("spins", spins)
        self.register_buffer("inverse", 1 / torch.linspace(1.5, 3.5, temperatures).view(-1, 1, 1))
        line = torch.arange(side)
        self.register_buffer("board", (line.view(-1, 1) + line) % 2 == 0)
        self.register_buffer("histogram", torch.zeros(temperatures, bins))

    def forward(self, chances: torch.Tensor) -> torch.Tensor:
        """Return the magnetizations; ``chances`` is ``(sweeps, 2, temperatures, side, side)``."""
        bins = self.histogram.shape[1]
        magnetization = self.spins.mean((1, 2))
        for sweep in chances:
            for color, chance in zip((self.board, ~self.board), sweep, strict=True):
                s = self.spins
                field = s.roll(1, 1) + s.roll(-1, 1) + s.roll(1, 2) + s.roll(-1, 2)
                accepted = color & (chance < torch.exp(-2 * self.inverse * s * field))
                self.spins[accepted] *= -1
            magnetization = self.spins.mean((1, 2))
            place = ((magnetization + 1) / 2 * (bins - 1)).round().long().unsqueeze(1)
            self.histogram.scatter_add_(1, place, torch.ones_like(place, dtype=torch.float32))
        return magnetization


def metropolis(device: str, *, side: int, temperatures: int, sweeps: int, bins: int) -> Program:
    """Return ``sweeps`` sweeps over ``temperatures`` lattices."""
    torch.manual_seed(0)
    with torch.device(device):
        chances = torch.rand(sweeps, 2, temperatures, side, side)
        return Program(Spins(side, temperatures, bins), (chances,))
