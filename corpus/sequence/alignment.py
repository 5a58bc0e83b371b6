"""Dynamic time warping with soft minima, by antidiagonals of one table, in training."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Warping(torch.nn.Module):
    """An encoder of series, and the soft warping cost between what it makes and the targets."""

    def __init__(self, width: int, hidden: int, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma
        self.encode: torch.nn.Linear = torch.nn.Linear(width, hidden)

    def forward(self, series: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return ``(batch,)`` costs of ``(batch, length, width)`` against ``(batch, length, hidden)``."""
        cost = torch.cdist(self.encode(series), targets).square()
        batch, rows, columns = cost.shape
        table = cost.new_full((batch, rows + 1, columns + 1), 1e4)
        table[:, 0, 0] = 0
        for total in range(2, rows + columns + 1):
            i = torch.arange(max(1, total - columns), min(rows, total - 1) + 1, device=cost.device)
            j = total - i
            before = torch.stack([table[:, i - 1, j - 1], table[:, i - 1, j], table[:, i, j - 1]])
            soft = -self.gamma * torch.logsumexp(-before / self.gamma, 0)
            table[:, i, j] = cost[:, i - 1, j - 1] + soft
        return table[:, -1, -1]


def warp(device: str, *, batch: int, length: int, width: int, hidden: int) -> Program:
    """Return forward and backward of the cost of ``batch`` series."""
    torch.manual_seed(0)
    with torch.device(device):
        series = torch.randn(batch, length, width)
        return Program(Warping(width, hidden, 1.0), (series, torch.randn(batch, length, hidden)))
