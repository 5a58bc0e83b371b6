"""The wave equation by leapfrog steps: two fields that take turns, sources and receivers."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Wave(torch.nn.Module):
    """Pressure now and one step before, the speed of sound, and what absorbs waves at the edges."""

    now: torch.Tensor
    before: torch.Tensor
    speed: torch.Tensor
    damping: torch.Tensor
    stencil: torch.Tensor

    def __init__(self, shots: int, side: int) -> None:
        super().__init__()
        self.register_buffer("now", torch.zeros(shots, 1, side, side))
        self.register_buffer("before", torch.zeros(shots, 1, side, side))
        self.register_buffer("speed", 0.1 + 0.1 * torch.rand(side, side))
        ramp = torch.minimum(torch.arange(side), torch.arange(side).flip(0)).clamp(max=4) / 4
        self.register_buffer("damping", 0.9 + 0.1 * torch.outer(ramp, ramp))
        stencil = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])
        self.register_buffer("stencil", stencil.view(1, 1, 3, 3))

    def forward(self, pulses: torch.Tensor, source: torch.Tensor, receivers: torch.Tensor) -> torch.Tensor:
        """Return what receivers hear, ``(steps, shots, receivers)``.

        Args:
            pulses: ``(steps, shots)``.
            source: row and column of each shot's source, ``(2, shots)``.
            receivers: their columns, in the third row.
        """
        steps, shots = pulses.shape
        shot = torch.arange(shots, device=pulses.device)
        heard = pulses.new_zeros(steps, shots, len(receivers))
        now, before = self.now, self.before
        for step in range(steps):
            curvature = torch.nn.functional.conv2d(now, self.stencil, padding=1)
            before.neg_().add_(now, alpha=2).add_(curvature * self.speed.square())
            before[shot, 0, source[0], source[1]] += pulses[step]
            before *= self.damping
            now *= self.damping
            now, before = before, now
            heard[step] = now[:, 0, 3, :][:, receivers]
        return heard


def propagate(device: str, *, shots: int, side: int, steps: int, receivers: int) -> Program:
    """Return ``steps`` (an even number) of ``shots`` waves on ``side`` by ``side`` points."""
    torch.manual_seed(0)
    with torch.device(device):
        pulses = torch.randn(steps, shots)
        source = torch.randint(4, side - 4, (2, shots))
        columns = torch.randperm(side)[:receivers]
        return Program(Wave(shots, side), (pulses, source, columns))
