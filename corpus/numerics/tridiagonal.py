"""Tridiagonal systems by Thomas's algorithm: one sweep down, one sweep up, in preallocated rows."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Thomas(torch.nn.Module):
    """An implicit step of many lines at once, as options are priced on grids."""

    ratio: torch.Tensor
    scaled: torch.Tensor

    def __init__(self, size: int, lines: int) -> None:
        super().__init__()
        self.register_buffer("ratio", torch.empty(size, lines))
        self.register_buffer("scaled", torch.empty(size, lines))

    def forward(
        self, below: torch.Tensor, main: torch.Tensor, above: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Return ``values``, ``(size, lines)``, which holds the answer; the diagonals are of its shape."""
        size = len(values)
        torch.div(above[0], main[0], out=self.ratio[0])
        torch.div(values[0], main[0], out=self.scaled[0])
        for i in range(1, size):
            pivot = main[i] - below[i] * self.ratio[i - 1]
            self.ratio[i] = above[i] / pivot
            self.scaled[i] = (values[i] - below[i] * self.scaled[i - 1]) / pivot
        values[-1] = self.scaled[-1]
        for i in range(size - 2, -1, -1):
            values[i] = self.scaled[i] - self.ratio[i] * values[i + 1]
        return values


def sweep(device: str, *, size: int, lines: int) -> Program:
    """Return an implicit step of ``lines`` lines of ``size`` points."""
    torch.manual_seed(0)
    with torch.device(device):
        below, above = -torch.rand(size, lines), -torch.rand(size, lines)
        model = Thomas(size, lines)
        model.ratio.zero_()
        model.scaled.zero_()
        return Program(model, (below, 2.5 + torch.rand(size, lines), above, torch.randn(size, lines)))
