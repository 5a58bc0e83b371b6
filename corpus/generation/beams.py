"""Beam search: the best continuations are chosen, and tokens, scores and caches follow their beams."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Beams(torch.nn.Module):
    """Sequences, scores and finished hypotheses of a batch, and caches that are reordered with the beams."""

    tokens: torch.Tensor
    scores: torch.Tensor
    finished: torch.Tensor
    best: torch.Tensor
    caches: torch.Tensor

    def __init__(self, batch: int, beams: int, length: int, layers: int, hidden: int, end: int) -> None:
        super().__init__()
        self.end = end
        self.register_buffer("tokens", torch.randint(3, 9, (batch, beams, length)))
        self.register_buffer("scores", torch.randn(batch, beams))
        self.register_buffer("finished", torch.zeros(batch, length, dtype=torch.int64))
        self.register_buffer("best", torch.full((batch,), -1e9))
        self.register_buffer("caches", torch.randn(2 * layers, batch * beams, length, hidden))

    def forward(self, logits: torch.Tensor, position: int) -> torch.Tensor:
        """Return the next tokens, ``(batch * beams,)``; ``logits`` is ``(batch, beams, vocab)``."""
        batch, beams, vocab = logits.shape
        scores = logits.log_softmax(-1)
        scores += self.scores.unsqueeze(-1)
        top, index = scores.view(batch, -1).topk(2 * beams, dim=1)
        beam, token = index // vocab, index % vocab
        # A hypothesis that ends is kept when it is the best so far, and is no beam any more.
        ends = token == self.end
        ended = top.masked_fill(~ends, -1e9) / (position + 1)
        value, which = ended.max(1)
        better = value > self.best
        rows = torch.arange(batch, device=logits.device)
        candidate = self.tokens[rows, beam[rows, which]]
        self.finished.copy_(torch.where(better.unsqueeze(1), candidate, self.finished))
        torch.maximum(self.best, value, out=self.best)
        top.masked_fill_(ends, -1e9)
        kept, order = top.topk(beams, dim=1)
        source = beam.gather(1, order)
        following = token.gather(1, order)
        self.scores.copy_(kept)
        self.tokens.copy_(self.tokens.gather(1, source.unsqueeze(-1).expand_as(self.tokens)))
        self.tokens[:, :, position] = following
        flat = (source + beams * rows.unsqueeze(1)).flatten()
        for cache in self.caches:
            cache.copy_(cache.index_select(0, flat))
        return following.flatten()


def step(
    device: str,
    *,
    batch: int,
    beams: int,
    length: int,
    position: int,
    layers: int,
    hidden: int,
    vocab: int,
) -> Program:
    """Return one step of a beam search at ``position``."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Beams(batch, beams, length, layers, hidden, 2)
        return Program(model, (torch.randn(batch, beams, vocab) * 4, position))
