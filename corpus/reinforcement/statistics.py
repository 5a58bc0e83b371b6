"""Running mean and variance of observations, merged batch by batch, and observations normalized by them."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Normalizer(torch.nn.Module):
    """Means, variances and a count in double precision; observations are normalized where they are."""

    mean: torch.Tensor
    variance: torch.Tensor
    count: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(width, dtype=torch.float64))
        self.register_buffer("count", torch.full((1,), 1e-4, dtype=torch.float64))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return ``observations``, ``(batch, width)``, normalized in place and clipped."""
        batch = observations.double()
        mean, variance, size = batch.mean(0), batch.var(0, unbiased=False), len(batch)
        delta = mean - self.mean
        total = self.count + size
        self.mean.add_(delta * size / total)
        self.variance.mul_(self.count).add_(variance * size)
        self.variance.add_(delta.square() * self.count * size / total).div_(total)
        self.count.copy_(total)
        observations.sub_(self.mean).div_((self.variance + 1e-8).sqrt())
        return observations.clamp_(-5, 5)


def normalize(device: str, *, batch: int, width: int) -> Program:
    """Return a batch of normalized observations."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Normalizer(width), (torch.randn(batch, width) * 3 + 1,))
