"""Levenshtein's distance of many pairs of strings: a table that is filled cell by cell, or by diagonals."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Table(torch.nn.Module):
    """The whole table of every pair, filled cell by cell; word error rates and spell checkers want it."""

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return ``(pairs,)``; the strings are ``(pairs, rows)`` and ``(pairs, columns)``."""
        pairs, rows = first.shape
        columns = second.shape[1]
        table = torch.zeros(pairs, rows + 1, columns + 1, device=first.device, dtype=torch.int32)
        table[:, :, 0] = torch.arange(rows + 1, device=first.device)
        table[:, 0, :] = torch.arange(columns + 1, device=first.device)
        for i in range(1, rows + 1):
            for j in range(1, columns + 1):
                change = (first[:, i - 1] != second[:, j - 1]).int()
                best = torch.minimum(table[:, i - 1, j], table[:, i, j - 1]) + 1
                table[:, i, j] = torch.minimum(best, table[:, i - 1, j - 1] + change)
        return table[:, -1, -1]


class Rows(torch.nn.Module):
    """Two rows that take turns, kept by the caller; insertions along a row are a running minimum."""

    above: torch.Tensor
    row: torch.Tensor

    def __init__(self, pairs: int, columns: int) -> None:
        super().__init__()
        self.register_buffer("above", torch.zeros(pairs, columns + 1))
        self.register_buffer("row", torch.zeros(pairs, columns + 1))

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return ``(pairs,)``; the strings are ``(pairs, rows)`` and ``(pairs, columns)``."""
        columns = second.shape[1]
        place = torch.arange(columns + 1, device=first.device)
        above, row = self.above, self.row
        above[:] = place
        for i in range(first.shape[1]):
            change = (first[:, i : i + 1] != second).float()
            row[:, 0] = i + 1
            row[:, 1:] = torch.minimum(above[:, 1:] + 1, above[:, :-1] + change)
            row.sub_(place)
            row.copy_(row.cummin(1).values)
            row.add_(place)
            above, row = row, above
        return above[:, -1].clone()


def table(device: str, *, pairs: int, rows: int, columns: int) -> Program:
    """Return the distances of ``pairs`` pairs, cell by cell."""
    torch.manual_seed(0)
    with torch.device(device):
        strings = torch.randint(0, 4, (pairs, rows)), torch.randint(0, 4, (pairs, columns))
        return Program(Table(), strings)


def rows(device: str, *, pairs: int, rows: int, columns: int) -> Program:
    """Return the distances of ``pairs`` pairs, row by row."""
    torch.manual_seed(0)
    with torch.device(device):
        strings = torch.randint(0, 4, (pairs, rows)), torch.randint(0, 4, (pairs, columns))
        return Program(Rows(pairs, columns), strings)
