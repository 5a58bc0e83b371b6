"""RWKV-4 in decoding: one tensor holds five rows of state per layer, each written in place every token."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

ROWS = 5  # last input of channel mixing, last input of time mixing, numerator, denominator, largest exponent


class Layer(torch.nn.Module):
    """Time mixing, which looks back, and channel mixing, each behind a norm."""

    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.mix: torch.nn.Parameter = torch.nn.Parameter(torch.rand(5, hidden))
        self.first: torch.nn.Parameter = torch.nn.Parameter(torch.randn(hidden))
        self.decay: torch.nn.Parameter = torch.nn.Parameter(-torch.rand(hidden))
        self.time_norm: torch.nn.LayerNorm = torch.nn.LayerNorm(hidden)
        self.channel_norm: torch.nn.LayerNorm = torch.nn.LayerNorm(hidden)
        self.key: torch.nn.Linear = torch.nn.Linear(hidden, hidden, bias=False)
        self.value: torch.nn.Linear = torch.nn.Linear(hidden, hidden, bias=False)
        self.receptance: torch.nn.Linear = torch.nn.Linear(hidden, hidden, bias=False)
        self.output: torch.nn.Linear = torch.nn.Linear(hidden, hidden, bias=False)
        self.up: torch.nn.Linear = torch.nn.Linear(hidden, intermediate, bias=False)
        self.down: torch.nn.Linear = torch.nn.Linear(intermediate, hidden, bias=False)
        self.gate: torch.nn.Linear = torch.nn.Linear(hidden, hidden, bias=False)

    def time_mixing(self, token: torch.Tensor, state: torch.Tensor, row: int) -> torch.Tensor:
        """Return what time mixing adds to ``(batch, hidden)``; updates four rows of ``state``."""
        mixed = torch.lerp(state[row].to(token.dtype), token, self.mix[:3, None])
        state[row] = token
        key, value = self.key(mixed[0]).float(), self.value(mixed[1]).float()
        above, below, largest = state[row + 1], state[row + 2], state[row + 3]
        now = self.first.float() + key
        top = torch.maximum(largest, now)
        old, new = torch.exp(largest - top), torch.exp(now - top)
        average = (old * above + new * value) / (old * below + new)
        later = largest + self.decay.float()
        top = torch.maximum(later, key)
        old, new = torch.exp(later - top), torch.exp(key - top)
        state[row + 1] = old * above + new * value
        state[row + 2] = old * below + new
        state[row + 3] = top
        output: torch.Tensor = self.output(self.receptance(mixed[2]).sigmoid() * average.to(token.dtype))
        return output

    def channel_mixing(self, token: torch.Tensor, state: torch.Tensor, row: int) -> torch.Tensor:
        """Return what channel mixing adds to ``(batch, hidden)``; keeps it in row ``row`` of ``state``."""
        mixed = torch.lerp(state[row].to(token.dtype), token, self.mix[3:, None])
        state[row] = token
        inner = self.down(torch.relu(self.up(mixed[0])).square())
        output: torch.Tensor = self.gate(mixed[1]).sigmoid() * inner
        return output


class Stack(torch.nn.Module):
    """Layers over one state."""

    def __init__(self, layers: int, hidden: int, intermediate: int, vocab: int) -> None:
        super().__init__()
        self.embedding: torch.nn.Embedding = torch.nn.Embedding(vocab, hidden)
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Layer(hidden, intermediate) for _ in range(layers)
        )
        self.norm: torch.nn.LayerNorm = torch.nn.LayerNorm(hidden)
        self.head: torch.nn.Linear = torch.nn.Linear(hidden, vocab, bias=False)

    def forward(self, tokens: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Return the logits of ``(batch,)`` tokens; ``state`` is ``(5 * layers, batch, hidden)``."""
        hidden = self.embedding(tokens)
        for i, layer in enumerate(self.layers):
            assert isinstance(layer, Layer)
            hidden = hidden + layer.time_mixing(layer.time_norm(hidden), state, ROWS * i + 1)
            hidden = hidden + layer.channel_mixing(layer.channel_norm(hidden), state, ROWS * i)
        logits: torch.Tensor = self.head(self.norm(hidden))
        return logits


def decode_step(
    device: str, *, layers: int, hidden: int, intermediate: int, vocab: int, batch: int, dtype: str
) -> Program:
    """Return one decode step; the state is kept in float32 whatever ``dtype``, as RWKV does."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Stack(layers, hidden, intermediate, vocab).to(getattr(torch, dtype)).eval()
        tokens = torch.randint(0, vocab, (2, batch))
        state = torch.zeros(ROWS * layers, batch, hidden)
        state[ROWS - 1 :: ROWS] = -1e30  # nothing seen yet
        with torch.no_grad():
            model(tokens[0], state)
    return Program(model, (tokens[1].clone(), state))
