"""Hidden states: Viterbi's best path with back pointers, and the forward algorithm in one row."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Viterbi(torch.nn.Module):
    """Scores of transitions between tags, and buffers for scores and back pointers."""

    transitions: torch.Tensor
    scores: torch.Tensor
    pointers: torch.Tensor

    def __init__(self, batch: int, length: int, tags: int) -> None:
        super().__init__()
        self.register_buffer("transitions", torch.randn(tags, tags))
        self.register_buffer("scores", torch.zeros(length, batch, tags))
        self.register_buffer("pointers", torch.zeros(length, batch, tags, dtype=torch.int64))

    def forward(self, emissions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the best tags, ``(length, batch)``; ``emissions`` is ``(length, batch, tags)``."""
        length, batch, _ = emissions.shape
        self.scores[0] = emissions[0]
        for t in range(1, length):
            options = self.scores[t - 1].unsqueeze(2) + self.transitions
            best, self.pointers[t] = options.max(1)
            moved = best + emissions[t]
            self.scores[t] = torch.where(mask[t].unsqueeze(1), moved, self.scores[t - 1])
        path = torch.zeros(length, batch, dtype=torch.int64, device=emissions.device)
        path[-1] = self.scores[-1].argmax(1)
        for t in range(length - 1, 0, -1):
            back = self.pointers[t].gather(1, path[t].unsqueeze(1)).squeeze(1)
            path[t - 1] = torch.where(mask[t], back, path[t])
        return path


class Forward(torch.nn.Module):
    """The likelihood of what was seen, by one row that moves along and is scaled at every step."""

    transitions: torch.Tensor
    row: torch.Tensor
    scales: torch.Tensor

    def __init__(self, batch: int, length: int, states: int) -> None:
        super().__init__()
        self.register_buffer("transitions", torch.rand(states, states).softmax(1))
        self.register_buffer("row", torch.full((batch, states), 1 / states))
        self.register_buffer("scales", torch.zeros(length, batch))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """Return ``(batch,)``; ``seen`` holds likelihoods, ``(length, batch, states)``."""
        self.row.fill_(1 / self.row.shape[1])
        for t in range(len(seen)):
            self.row.copy_(self.row @ self.transitions).mul_(seen[t])
            torch.sum(self.row, 1, out=self.scales[t])
            self.row.div_(self.scales[t].unsqueeze(1))
        return self.scales.log().sum(0)


def best(device: str, *, batch: int, length: int, tags: int) -> Program:
    """Return the best tags of ``batch`` sequences of different lengths."""
    torch.manual_seed(0)
    with torch.device(device):
        lengths = torch.randint(2, length + 1, (batch,))
        mask = torch.arange(length).unsqueeze(1) < lengths
        return Program(Viterbi(batch, length, tags), (torch.randn(length, batch, tags), mask))


def likelihood(device: str, *, batch: int, length: int, states: int) -> Program:
    """Return the likelihood of ``batch`` sequences."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Forward(batch, length, states), (torch.rand(length, batch, states),))
