"""Logits processors that change the scores in place, one behind the other, as generation loops chain them."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


def repetition(scores: torch.Tensor, tokens: torch.Tensor, penalty: float) -> torch.Tensor:
    """Make the tokens of ``(batch, length)`` less likely among ``(batch, vocab)``."""
    seen = scores.gather(1, tokens)
    seen = torch.where(seen < 0, seen * penalty, seen / penalty)
    return scores.scatter_(1, tokens, seen)


def top_k(scores: torch.Tensor, k: int) -> torch.Tensor:
    """Leave the ``k`` highest scores of each row."""
    lowest = scores.topk(k).values[:, -1:]
    return scores.masked_fill_(scores < lowest, -float("inf"))


def top_p(scores: torch.Tensor, p: float) -> torch.Tensor:
    """Leave the highest scores of each row that hold the probability ``p`` together."""
    ordered, index = scores.sort(1)
    below = ordered.softmax(1).cumsum(1)
    drop = below <= 1 - p
    drop[:, -1:] = False
    mask = torch.zeros_like(drop).scatter_(1, index, drop)
    return scores.masked_fill_(mask, -float("inf"))


class Chain(torch.nn.Module):
    """Bans, penalties, temperature and truncation; then the token with the highest noisy score."""

    banned: torch.Tensor
    bias: torch.Tensor

    def __init__(self, vocab: int, banned: int, k: int) -> None:
        super().__init__()
        self.k = k
        self.register_buffer("banned", torch.randperm(vocab)[:banned])
        self.register_buffer("bias", torch.randn(vocab) * 0.1)

    def forward(
        self, scores: torch.Tensor, tokens: torch.Tensor, noise: torch.Tensor, temperature: torch.Tensor
    ) -> torch.Tensor:
        """Return ``(batch,)`` tokens; changes ``scores``, ``(batch, vocab)``."""
        scores += self.bias
        scores[:, self.banned] = -float("inf")
        repetition(scores, tokens, 1.2)
        scores.div_(temperature.unsqueeze(1))
        top_k(scores, self.k)
        top_p(scores, 0.9)
        return (scores.softmax(1) / noise).argmax(1)


class Penalties(torch.nn.Module):
    """Counts of what each sequence has said, kept between steps, and penalties by presence and frequency."""

    counts: torch.Tensor
    prompted: torch.Tensor

    def __init__(self, batch: int, vocab: int) -> None:
        super().__init__()
        self.register_buffer("counts", torch.zeros(batch, vocab, dtype=torch.int32))
        self.register_buffer("prompted", torch.rand(batch, vocab) < 0.2)

    def forward(
        self, scores: torch.Tensor, last: torch.Tensor, strength: torch.Tensor, minimum: float
    ) -> torch.Tensor:
        """Return probabilities, ``(batch, vocab)``.

        Args:
            scores: ``(batch, vocab)``, changed.
            last: the tokens said last, ``(batch, 1)``.
            strength: of repetition, frequency and presence, ``(3, batch)``.
            minimum: how likely a token must be at least, relative to the likeliest.
        """
        self.counts.scatter_add_(1, last, torch.ones_like(last, dtype=torch.int32))
        said = self.counts > 0
        factor = torch.where(said | self.prompted, strength[0].unsqueeze(1), 1.0)
        scores *= torch.where(scores > 0, 1 / factor, factor)
        scores -= strength[1].unsqueeze(1) * self.counts
        scores -= strength[2].unsqueeze(1) * said
        probabilities = scores.softmax(1)
        drop = probabilities < minimum * probabilities.amax(1, keepdim=True)
        probabilities[drop] = 0
        probabilities /= probabilities.sum(1, keepdim=True)
        return probabilities


class Grammar(torch.nn.Module):
    """Bit masks of the tokens that a grammar allows next, applied to the rows that have one."""

    shifts: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shifts", torch.arange(32, dtype=torch.int32))

    def forward(self, scores: torch.Tensor, bits: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return the best allowed tokens, ``(batch,)``.

        Args:
            scores: ``(batch, vocab)``, changed.
            bits: 32 tokens a number, ``(constrained, vocab / 32)``.
            rows: which rows are constrained.
        """
        allowed = (bits.unsqueeze(-1) >> self.shifts & 1).bool().flatten(1)
        scores[rows] = scores[rows].masked_fill_(~allowed, -float("inf"))
        return scores.argmax(1)


def chain(device: str, *, batch: int, vocab: int, length: int, banned: int, k: int) -> Program:
    """Return one step of a chain of processors."""
    torch.manual_seed(0)
    with torch.device(device):
        arguments = (
            torch.randn(batch, vocab) * 3,
            torch.randint(0, vocab, (batch, length)),
            torch.empty(batch, vocab).exponential_(1),
            torch.rand(batch) + 0.5,
        )
        return Program(Chain(vocab, banned, k), arguments)


def penalties(device: str, *, batch: int, vocab: int) -> Program:
    """Return one step of a server's penalties."""
    torch.manual_seed(0)
    with torch.device(device):
        last = torch.randint(0, vocab, (batch, 1))
        strength = torch.rand(3, batch) + torch.tensor([[1.0], [0.0], [0.0]])
        return Program(Penalties(batch, vocab), (torch.randn(batch, vocab) * 3, last, strength, 0.05))


def grammar(device: str, *, batch: int, vocab: int, constrained: int) -> Program:
    """Return one step in which ``constrained`` rows have a grammar."""
    torch.manual_seed(0)
    with torch.device(device):
        bits = torch.randint(1, 2**31 - 1, (constrained, vocab // 32), dtype=torch.int32)
        rows = torch.randperm(batch)[:constrained]
        return Program(Grammar(), (torch.randn(batch, vocab), bits, rows))
