"""The sampler of a serving engine: logits are processed in place, tokens are counted and kept in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class History(torch.nn.Module):
    """What each request has generated: how often each token, and the last ones in a ring."""

    counts: torch.Tensor
    ring: torch.Tensor
    lengths: torch.Tensor

    def __init__(self, requests: int, vocab: int, length: int) -> None:
        super().__init__()
        self.register_buffer("counts", torch.randint(0, 50, (requests, vocab)).sub(47).clamp(min=0))
        self.register_buffer("ring", torch.zeros(requests, length, dtype=torch.int64))
        self.register_buffer("lengths", torch.randint(0, length, (requests,)))

    def append(self, tokens: torch.Tensor, valid: torch.Tensor) -> None:
        """Keep ``(requests, n)`` tokens where ``valid``; the valid ones of a request come first."""
        self.counts.scatter_add_(1, tokens, valid.to(self.counts.dtype))
        places = (self.lengths[:, None] + torch.arange(tokens.shape[1], device=tokens.device)).remainder(
            self.ring.shape[1]
        )
        self.ring.scatter_(1, places, torch.where(valid, tokens, self.ring.gather(1, places)))
        self.lengths.add_(valid.sum(1))


class Sampler(torch.nn.Module):
    """Penalties, temperature, top-k and top-p of each request, then one token."""

    def __init__(self, requests: int, vocab: int, length: int) -> None:
        super().__init__()
        self.history: History = History(requests, vocab, length)
        self.repetition: torch.Tensor = torch.rand(requests, 1) + 1
        self.frequency: torch.Tensor = torch.rand(requests, 1)
        self.presence: torch.Tensor = torch.rand(requests, 1)
        self.temperature: torch.Tensor = torch.rand(requests, 1) + 0.5
        self.top_k: torch.Tensor = torch.randint(2, min(50, vocab), (requests, 1))
        self.top_p: torch.Tensor = torch.rand(requests, 1) * 0.5 + 0.4
        self.stop: torch.Tensor = torch.randperm(vocab)[:4]
        self.favoured: torch.Tensor = torch.randperm(vocab)[:16]
        self.bias: torch.Tensor = torch.randn(16)

    def forward(self, logits: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Return one token for each row of ``(requests, vocab)``; ``noise``, exponential, decides."""
        logits.index_fill_(1, self.stop, float("-inf"))
        logits.index_add_(1, self.favoured, self.bias.expand(len(logits), -1))
        self._penalize(logits)
        logits.div_(self.temperature)
        self._truncate(logits)
        tokens = logits.softmax(-1).div_(noise).argmax(-1, keepdim=True)
        self.history.append(tokens, torch.ones_like(tokens, dtype=torch.bool))
        return tokens

    def _penalize(self, logits: torch.Tensor) -> None:
        counts = self.history.counts
        seen = counts > 0
        scale = torch.where(seen, self.repetition, 1.0)
        logits.mul_(torch.where(logits > 0, 1 / scale, scale))
        logits.sub_(self.frequency * counts)
        logits.sub_(self.presence * seen)

    def _truncate(self, logits: torch.Tensor) -> None:
        """Mask all but the ``top_k`` likeliest, and of these all but ``top_p`` of the probability."""
        ascending, order = logits.sort(-1)
        least = ascending.gather(1, logits.shape[1] - self.top_k)
        ascending.masked_fill_(ascending < least, float("-inf"))
        below = ascending.softmax(-1).cumsum_(-1) <= 1 - self.top_p
        below[:, -1] = False
        ascending.masked_fill_(below, float("-inf"))
        logits.scatter_(1, order, ascending)


class Verifier(torch.nn.Module):
    """Speculative decoding: drafted tokens are kept as far as the model would have chosen them."""

    def __init__(self, requests: int, vocab: int, length: int) -> None:
        super().__init__()
        self.history: History = History(requests, vocab, length)

    def forward(self, logits: torch.Tensor, draft: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        """Return how many of ``(requests, drafted)`` tokens are kept.

        ``logits`` are ``(requests, drafted + 1, vocab)``. The kept tokens and the model's own next one are
        written into ``output``, ``(requests, drafted + 1)``, and -1 behind them.
        """
        logits.masked_fill_((self.history.counts > 2)[:, None], float("-inf"))
        chosen = logits.argmax(-1)
        kept = (draft == chosen[:, :-1]).int().cumprod(1).sum(1)
        valid = torch.arange(chosen.shape[1], device=chosen.device) <= kept[:, None]
        output.fill_(-1)
        output.copy_(torch.where(valid, chosen, output))
        self.history.append(chosen, valid)
        return kept


def sample(device: str, *, requests: int, vocab: int, length: int) -> Program:
    """Return the sampling of one token for each request; rings hold ``length`` tokens."""
    torch.manual_seed(0)
    with torch.device(device):
        sampler = Sampler(requests, vocab, length)
        logits = torch.randn(requests, vocab) * 4
        noise = torch.empty(requests, vocab).exponential_()
    return Program(sampler, (logits, noise))


def verify(device: str, *, requests: int, drafted: int, vocab: int, length: int) -> Program:
    """Return the verification of ``drafted`` tokens of each request, every other one being a bad guess."""
    torch.manual_seed(0)
    with torch.device(device):
        verifier = Verifier(requests, vocab, length)
        logits = torch.randn(requests, drafted + 1, vocab)
        good = logits.masked_fill((verifier.history.counts > 2)[:, None], float("-inf")).argmax(-1)[:, :-1]
        guess = torch.randint(0, vocab, good.shape)
        draft = torch.where(torch.rand(good.shape) < 0.7, good, guess)
        output = torch.zeros(requests, drafted + 1, dtype=torch.int64)
    return Program(verifier, (logits, draft, output))
