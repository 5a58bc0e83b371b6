"""Molecular dynamics by velocity Verlet: forces of pairs are added to both of their atoms by index."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Molecules(torch.nn.Module):
    """Positions, velocities and forces of atoms in a periodic box."""

    positions: torch.Tensor
    velocities: torch.Tensor
    forces: torch.Tensor

    def __init__(self, positions: torch.Tensor, box: float, step: float) -> None:
        super().__init__()
        self.box = box
        self.step = step
        self.register_buffer("positions", positions)
        self.register_buffer("velocities", torch.randn_like(positions) * 0.1)
        self.register_buffer("forces", torch.zeros_like(positions))

    def pull(self, pairs: torch.Tensor) -> torch.Tensor:
        """Set the forces, Lennard-Jones's, from ``(2, pairs)``; return the energy of each pair."""
        first, second = pairs
        distance = self.positions[first] - self.positions[second]
        distance -= self.box * torch.round(distance / self.box)
        inverse = 1 / distance.square().sum(1).clamp_(min=0.25)
        sixth = inverse**3
        force = (24 * inverse * sixth * (2 * sixth - 1)).unsqueeze(1) * distance
        self.forces.zero_()
        self.forces.index_add_(0, first, force)
        self.forces.index_add_(0, second, force, alpha=-1)
        return 4 * sixth * (sixth - 1)

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        """Return the energy after one step; ``pairs`` is ``(2, pairs)``, the neighbour list."""
        self.velocities.add_(self.forces, alpha=0.5 * self.step)
        self.positions.add_(self.velocities, alpha=self.step).remainder_(self.box)
        energy = self.pull(pairs).sum()
        self.velocities.add_(self.forces, alpha=0.5 * self.step)
        # Berendsen's thermostat.
        heat = self.velocities.square().sum()
        self.velocities.mul_((0.9 + 0.1 * 0.03 * self.velocities.numel() / heat).sqrt())
        return energy + 0.5 * heat


def verlet(device: str, *, side: int, neighbours: int) -> Program:
    """Return a step of ``side ** 3`` atoms near a cubic lattice, each with some pairs."""
    torch.manual_seed(0)
    with torch.device(device):
        atoms = side**3
        line = torch.arange(side, dtype=torch.float32) * 1.2
        positions = torch.cartesian_prod(line, line, line) + 0.05 * torch.randn(atoms, 3)
        first = torch.arange(atoms).repeat_interleave(neighbours)
        second = (first + torch.arange(1, neighbours + 1).repeat(atoms)) % atoms
        model = Molecules(positions, 1.2 * side, 0.002)
        return Program(model, (torch.stack([first, second]),))
