"""A whole training step compiled as one call: loss, gradients, clipping, optimizer, averaged weights."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Gpt(torch.nn.Module):
    """A small causal transformer."""

    def __init__(self, vocab: int, layers: int, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.embed: torch.nn.Embedding = torch.nn.Embedding(vocab, hidden)
        self.qkv: torch.nn.ModuleList = torch.nn.ModuleList(
            torch.nn.Linear(hidden, 3 * hidden) for _ in range(layers)
        )
        self.mlp: torch.nn.ModuleList = torch.nn.ModuleList(
            torch.nn.Linear(hidden, hidden) for _ in range(layers)
        )
        self.score: torch.nn.Linear = torch.nn.Linear(hidden, vocab)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the loss of ``(batch, length)`` tokens."""
        states = self.embed(tokens[:, :-1])
        batch, length, hidden = states.shape
        for qkv, mlp in zip(self.qkv, self.mlp, strict=True):
            parts = qkv(torch.nn.functional.layer_norm(states, (hidden,)))
            query, key, value = parts.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            states = states + mixed.transpose(1, 2).flatten(2)
            states = states + mlp(torch.nn.functional.gelu(states))
        return torch.nn.functional.cross_entropy(self.score(states).flatten(0, 1), tokens[:, 1:].flatten())


class Trainer:
    """A model, its optimizer, an average of its weights, and the losses so far in a ring."""

    def __init__(self, model: Gpt) -> None:
        self.model = model
        self.optimizer: torch.optim.AdamW = torch.optim.AdamW(
            model.parameters(), lr=1e-3, foreach=True, capturable=model.score.weight.is_cuda
        )
        self.average: list[torch.Tensor] = [p.detach().clone() for p in model.parameters()]
        self.losses: torch.Tensor = torch.zeros(16, device=model.score.weight.device)
        self.position: torch.Tensor = torch.zeros(1, dtype=torch.int64, device=self.losses.device)

    @torch.enable_grad()
    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Train on ``(batch, length)`` tokens; return the norm that the gradients had."""
        loss = self.model(tokens)
        loss.backward()
        norm: torch.Tensor = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        with torch.no_grad():
            for average, weight in zip(self.average, self.model.parameters(), strict=True):
                average.lerp_(weight, 0.01)
            self.losses[self.position % 16] = loss.detach()
            self.position += 1
        self.optimizer.zero_grad(set_to_none=False)
        return norm


def step(
    device: str, *, vocab: int, layers: int, hidden: int, heads: int, batch: int, length: int
) -> Program:
    """Return one whole step, after one that made gradients and moments."""
    torch.manual_seed(0)
    with torch.device(device):
        trainer = Trainer(Gpt(vocab, layers, hidden, heads))
        tokens = torch.randint(0, vocab, (batch, length + 1))
        trainer.step(tokens)
        return Program(trainer.step, (tokens.roll(1, 1),))
