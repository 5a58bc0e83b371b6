"""Control flow inside the graph: a loop that carries a cache, a scan over a state, an update on condition."""

from __future__ import annotations

from typing import Any

import torch

from pytest_reinplace import Program

from ._torch import scan

_Carried = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
_Pair = tuple[torch.Tensor, torch.Tensor]
_Row = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


class Decoder(torch.nn.Module):
    """Greedy decoding in one loop: each step writes a row of the cache and a column of the tokens."""

    def __init__(self, vocab: int, hidden: int) -> None:
        super().__init__()
        self.embedding: torch.nn.Embedding = torch.nn.Embedding(vocab, hidden)
        self.key: torch.nn.Linear = torch.nn.Linear(hidden, hidden)
        self.output: torch.nn.Linear = torch.nn.Linear(hidden, vocab)

    def forward(self, tokens: torch.Tensor, cache: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        """Return ``tokens``, ``(batch, length)``, filled from ``start`` on; ``cache`` is filled, too."""

        def unfinished(at: torch.Tensor, tokens: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
            return at < tokens.shape[1] - 1

        def step(at: torch.Tensor, tokens: torch.Tensor, cache: torch.Tensor) -> _Carried:
            here = at.view(1)
            hidden = self.embedding(tokens.index_select(1, here).squeeze(1))
            cache = cache.index_copy(0, here, self.key(hidden).unsqueeze(0))
            seen = torch.arange(len(cache), device=at.device) <= at
            weight = torch.einsum("bh,nbh->nb", hidden, cache).masked_fill(~seen.unsqueeze(1), float("-inf"))
            mixed = torch.einsum("nb,nbh->bh", weight.softmax(0), cache)
            chosen = self.output(mixed).argmax(-1, keepdim=True)
            return at + 1, tokens.index_copy(1, here + 1, chosen), cache

        _, result, filled = torch.ops.higher_order.while_loop(unfinished, step, (start, tokens, cache), ())
        cache.copy_(filled)
        output: torch.Tensor = result
        return output


class StateSpace(torch.nn.Module):
    """A selective state space: the state decays and takes in each token, beside a window of the last ones."""

    def __init__(self, hidden: int, states: int, window: int) -> None:
        super().__init__()
        self.rate: torch.nn.Linear = torch.nn.Linear(hidden, hidden)
        self.write: torch.nn.Linear = torch.nn.Linear(hidden, states)
        self.read: torch.nn.Linear = torch.nn.Linear(hidden, states)
        self.decay: torch.nn.Parameter = torch.nn.Parameter(torch.rand(hidden, states) + 0.5)
        self.filter: torch.nn.Parameter = torch.nn.Parameter(torch.randn(hidden, window))
        self.scan: Any = scan()

    def forward(self, tokens: torch.Tensor, state: torch.Tensor, recent: torch.Tensor) -> torch.Tensor:
        """Return ``(length, batch, hidden)``, and move ``state`` and ``recent`` in place.

        Args:
            tokens: ``(length, batch, hidden)``.
            state: ``(batch, hidden, states)``.
            recent: ``(batch, hidden, window)``, the last tokens.
        """

        def step(carried: _Pair, row: _Row) -> tuple[_Pair, torch.Tensor]:
            (state, recent), (token, rate, write, read) = carried, row
            recent = recent.roll(-1, -1)
            recent[..., -1] = token
            mixed = torch.nn.functional.silu((recent * self.filter).sum(-1))
            state = torch.exp(-rate.unsqueeze(-1) * self.decay) * state
            state = state + (rate * mixed).unsqueeze(-1) * write.unsqueeze(1)
            return (state, recent), torch.einsum("bhs,bs->bh", state, read)

        rate = torch.nn.functional.softplus(self.rate(tokens))
        rows = (tokens, rate, self.write(tokens), self.read(tokens))
        (last, window), outputs = self.scan(step, (state, recent), rows)
        state.copy_(last)
        recent.copy_(window)
        result: torch.Tensor = outputs
        return result


class Stack(torch.nn.Module):
    """Layers whose states lie in two buffers, as a cache keeps them."""

    def __init__(self, layers: int, hidden: int, states: int, window: int) -> None:
        super().__init__()
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            StateSpace(hidden, states, window) for _ in range(layers)
        )

    def forward(self, tokens: torch.Tensor, states: torch.Tensor, recent: torch.Tensor) -> torch.Tensor:
        """Return the tokens after the last layer; moves the states of all layers in place."""
        for layer, state, window in zip(self.layers, states, recent, strict=True):
            tokens = tokens + layer(torch.nn.functional.rms_norm(tokens, tokens.shape[-1:]), state, window)
        return tokens


class Guarded(torch.nn.Module):
    """An embedding that is only updated where every gradient is finite."""

    weight: torch.Tensor
    momentum: torch.Tensor

    def __init__(self, rows: int, width: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.register_buffer("weight", torch.randn(rows, width))
        self.register_buffer("momentum", torch.zeros(rows, width))

    def forward(self, index: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        """Return whether all of ``gradient``, ``(rows, width)``, is finite; if so, update at ``index``."""

        def update(weight: torch.Tensor, momentum: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            momentum = (momentum * 0.9).index_add(0, index, gradient)
            return weight.index_add(0, index, momentum[index], alpha=-self.rate), momentum

        def skip(weight: torch.Tensor, momentum: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return weight.clone(), momentum.clone()

        finite = gradient.isfinite().all()
        weight, momentum = torch.cond(finite, update, skip, (self.weight, self.momentum))
        self.weight.copy_(weight)
        self.momentum.copy_(momentum)
        return finite


def decode(device: str, *, vocab: int, hidden: int, batch: int, prompt: int, length: int) -> Program:
    """Return the decoding of ``batch`` sequences from their ``prompt``-th token to their ``length``-th."""
    torch.manual_seed(0)
    with torch.device(device):
        tokens = torch.randint(0, vocab, (batch, length))
        cache = torch.randn(length, batch, hidden)
        return Program(Decoder(vocab, hidden).eval(), (tokens, cache, torch.tensor(prompt)))


def state_space(
    device: str, *, layers: int, hidden: int, states: int, window: int, batch: int, length: int
) -> Program:
    """Return ``layers`` scans over ``length`` tokens of ``batch`` sequences."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Stack(layers, hidden, states, window).eval()
        tokens = torch.randn(length, batch, hidden)
        state, recent = (torch.zeros(layers, batch, hidden, size) for size in (states, window))
        return Program(model, (tokens, state, recent))


def guarded(device: str, *, rows: int, width: int, touched: int) -> Program:
    """Return an update of ``touched`` rows of a table of ``rows``."""
    torch.manual_seed(0)
    with torch.device(device):
        index = torch.randint(0, rows, (touched,))
        return Program(Guarded(rows, width, 0.01), (index, torch.randn(touched, width)))
