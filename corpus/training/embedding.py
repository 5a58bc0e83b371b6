"""An embedding table of a recommender: looked up in bags, and updated where it was looked up."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Table(torch.nn.Module):
    """A table, and the sum of squared gradients of each of its rows."""

    weight: torch.Tensor
    squares: torch.Tensor

    def __init__(self, rows: int, width: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.register_buffer("weight", torch.randn(rows, width) * 0.1)
        self.register_buffer("squares", torch.zeros(rows))

    def forward(self, bags: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the sums of ``bags``, ``(batch, bag)``, then update their rows by row-wise Adagrad."""
        index = bags.flatten()
        pooled = self.weight[bags].sum(1)
        gradient = (pooled - target).repeat_interleave(bags.shape[1], 0)
        self.squares.index_add_(0, index, gradient.square().mean(1))
        rate = self.rate / (self.squares[index].sqrt() + 1e-6)
        self.weight.index_add_(0, index, -rate.unsqueeze(1) * gradient)
        return pooled


class Tables(torch.nn.Module):
    """The tables of several features."""

    def __init__(self, tables: int, rows: int, width: int, rate: float) -> None:
        super().__init__()
        self.tables: torch.nn.ModuleList = torch.nn.ModuleList(
            Table(rows, width, rate) for _ in range(tables)
        )

    def forward(self, bags: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, tables * width)`` for ``(tables, batch, bag)``, and update the tables."""
        pooled = [table(bag, target) for table, bag in zip(self.tables, bags, strict=True)]
        return torch.cat(pooled, 1)


def update(device: str, *, tables: int, rows: int, width: int, batch: int, bag: int) -> Program:
    """Return one training step of ``tables`` tables of ``rows`` rows."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Tables(tables, rows, width, 0.01)
        return Program(model, (torch.randint(0, rows, (tables, batch, bag)), torch.randn(batch, width)))
