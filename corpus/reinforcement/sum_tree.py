"""Prioritized replay: a sum tree in one flat tensor, updated from the leaves up, searched from the root."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class SumTree(torch.nn.Module):
    """A binary tree of sums, the root at one, and of minima; its last half are the leaves."""

    sums: torch.Tensor
    minima: torch.Tensor

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.register_buffer("sums", torch.zeros(2 * capacity))
        self.register_buffer("minima", torch.full((2 * capacity,), 1e6))

    def write(self, leaves: torch.Tensor, priorities: torch.Tensor) -> None:
        """Set priorities of leaves, both ``(batch,)``, and whatever stands above them."""
        node = leaves + self.capacity
        self.sums[node] = priorities
        self.minima[node] = priorities
        depth = self.capacity.bit_length() - 1
        for _ in range(depth):
            node = node // 2
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]
            self.minima[node] = torch.minimum(self.minima[2 * node], self.minima[2 * node + 1])

    def find(self, mass: torch.Tensor) -> torch.Tensor:
        """Return the leaves at which the sum from the left reaches ``(batch,)``."""
        node = torch.ones_like(mass, dtype=torch.int64)
        for _ in range(self.capacity.bit_length() - 1):
            left = 2 * node
            below = self.sums[left]
            right = mass > below
            mass = torch.where(right, mass - below, mass)
            node = torch.where(right, left + 1, left)
        return node - self.capacity


class Prioritized(torch.nn.Module):
    """New transitions get the highest priority there was; those that are drawn get their errors."""

    highest: torch.Tensor

    def __init__(self, tree: SumTree, alpha: float, beta: float) -> None:
        super().__init__()
        self.tree = tree
        self.alpha = alpha
        self.beta = beta
        self.register_buffer("highest", torch.ones(1))

    def forward(self, new: torch.Tensor, chances: torch.Tensor, errors: torch.Tensor) -> torch.Tensor:
        """Return the weights of what was drawn, ``(batch,)``.

        Args:
            new: leaves of the transitions that were just written.
            chances: where in its part of the sum each draw falls, ``(batch,)``.
            errors: what the drawn transitions will turn out to be off by, ``(batch,)``.
        """
        self.tree.write(new, self.highest.expand(len(new)) ** self.alpha)
        total = self.tree.sums[1]
        batch = len(chances)
        parts = torch.arange(batch, device=chances.device)
        drawn = self.tree.find((parts + chances) * total / batch)
        weights = (self.tree.sums[drawn + self.tree.capacity] / self.tree.minima[1]) ** -self.beta
        magnitude = errors.abs() + 1e-6
        self.tree.write(drawn, magnitude**self.alpha)
        self.highest.copy_(torch.maximum(self.highest, magnitude.max()))
        return weights


def draw(device: str, *, capacity: int, new: int, batch: int) -> Program:
    """Return a step of a memory of ``capacity`` (a power of two) transitions."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Prioritized(SumTree(capacity), 0.6, 0.4)
        model.tree.write(torch.arange(capacity), torch.rand(capacity) + 0.1)
        # Far enough from the borders between leaves that rounding draws no other; errors by leaf would differ
        # where one is drawn twice.
        chances = torch.full((batch,), 0.5)
        return Program(model, (torch.randperm(capacity)[:new], chances, torch.full((batch,), 0.7)))
