"""Cellular automata: the game of life on boards of bytes, and rule 110, written row by row."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Life(torch.nn.Module):
    """Boards of bytes, each stepped in place, and the age of every cell."""

    boards: torch.Tensor
    age: torch.Tensor

    def __init__(self, boards: int, side: int) -> None:
        super().__init__()
        self.register_buffer("boards", torch.randint(0, 2, (boards, side, side), dtype=torch.uint8))
        self.register_buffer("age", torch.zeros(boards, side, side, dtype=torch.int32))

    def forward(self) -> torch.Tensor:
        """Return how many cells live on each board."""
        padded = torch.nn.functional.pad(self.boards, (1, 1, 1, 1))
        count = torch.zeros_like(self.boards)
        side = self.boards.shape[1]
        for row in range(3):
            for column in range(3):
                if (row, column) != (1, 1):
                    count += padded[:, row : row + side, column : column + side]
        self.boards &= (count == 2).byte()
        self.boards |= (count == 3).byte()
        self.age += 1
        self.age *= self.boards
        return self.boards.sum((1, 2))


class Rule(torch.nn.Module):
    """An elementary automaton and its history, a row a generation."""

    history: torch.Tensor
    table: torch.Tensor

    def __init__(self, rule: int, width: int, generations: int) -> None:
        super().__init__()
        self.register_buffer("history", torch.zeros(generations, width, dtype=torch.int64))
        self.register_buffer("table", torch.tensor([rule >> bit & 1 for bit in range(8)]))

    def forward(self, first: torch.Tensor) -> torch.Tensor:
        """Return the history, ``(generations, width)``; ``first`` is its first row."""
        self.history[0] = first
        for number in range(1, len(self.history)):
            above = self.history[number - 1]
            code = 4 * above.roll(1) + 2 * above + above.roll(-1)
            torch.take(self.table, code, out=self.history[number])
        return self.history


def live(device: str, *, boards: int, side: int) -> Program:
    """Return one generation of ``boards`` boards."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Life(boards, side))


def history(device: str, *, rule: int, width: int, generations: int) -> Program:
    """Return ``generations`` rows of an elementary automaton."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Rule(rule, width, generations), (torch.randint(0, 2, (width,)),))
