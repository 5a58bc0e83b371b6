"""Knapsacks by dynamic programming: one row of best values, and which items were taken."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Knapsack(torch.nn.Module):
    """Best values of every capacity, for many knapsacks over the same items, in one row that is lifted."""

    def __init__(self, weights: list[int]) -> None:
        super().__init__()
        self.weights = weights

    def forward(self, worth: torch.Tensor, best: torch.Tensor, taken: torch.Tensor) -> torch.Tensor:
        """Return the best worth of each knapsack.

        Args:
            worth: of each item, ``(items, knapsacks)``.
            best: the row, ``(capacity + 1, knapsacks)``.
            taken: whether an item was taken, ``(items, capacity + 1, knapsacks)``.
        """
        best.zero_()
        taken.zero_()
        for item, weight in enumerate(self.weights):
            candidate = best[:-weight] + worth[item]
            better = candidate > best[weight:]
            taken[item, weight:] = better
            best[weight:] = torch.where(better, candidate, best[weight:])
        return best[-1]


def pack(device: str, *, items: int, capacity: int, knapsacks: int) -> Program:
    """Return the best worth of ``knapsacks`` knapsacks."""
    torch.manual_seed(0)
    weights = [1 + 3 * number % (capacity - 1) for number in range(items)]
    with torch.device(device):
        best = torch.zeros(capacity + 1, knapsacks)
        taken = torch.zeros(items, capacity + 1, knapsacks, dtype=torch.bool)
        return Program(Knapsack(weights), (torch.rand(items, knapsacks), best, taken))
