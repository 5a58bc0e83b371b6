"""Masked diffusion of text and images: the tokens that are surest are uncovered, the rest stays masked."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Unmasking(torch.nn.Module):
    """A small bidirectional model, and rounds that each uncover some of the masked tokens."""

    def __init__(self, vocab: int, hidden: int, rounds: int, block: int) -> None:
        super().__init__()
        self.mask = vocab
        self.rounds = rounds
        self.block = block
        self.embed: torch.nn.Embedding = torch.nn.Embedding(vocab + 1, hidden)
        self.mix: torch.nn.Linear = torch.nn.Linear(hidden, hidden)
        self.score: torch.nn.Linear = torch.nn.Linear(hidden, vocab)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return ``tokens``, ``(batch, length)``, whose blocks are uncovered in place, left to right."""
        for start in range(0, tokens.shape[1], self.block):
            window = tokens[:, start : start + self.block]
            for number in range(self.rounds):
                states = self.embed(tokens)
                states = states + torch.nn.functional.silu(self.mix(states.cumsum(1)))
                logits = self.score(states[:, start : start + self.block])
                confidence, guess = logits.softmax(-1).max(-1)
                masked = window == self.mask
                confidence.masked_fill_(~masked, -1.0)
                count = self.block // self.rounds if number + 1 < self.rounds else self.block
                chosen = confidence.topk(min(count, self.block), dim=1).indices
                uncover = torch.zeros_like(masked).scatter_(1, chosen, True) & masked
                window[uncover] = guess[uncover]
        return tokens


def uncover(
    device: str, *, vocab: int, hidden: int, rounds: int, block: int, blocks: int, batch: int
) -> Program:
    """Return ``blocks`` blocks of tokens, all uncovered."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Unmasking(vocab, hidden, rounds, block).eval()
        tokens = torch.full((batch, block * blocks), vocab)
        tokens[:, 0] = 1
        return Program(model, (tokens,))
