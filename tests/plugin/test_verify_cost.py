"""--reinplace-verify costs less than a compilation, even where no code is generated."""

from __future__ import annotations

import time
from typing import Any

import torch

from pytest_reinplace.capture.capture import Capture

LAYERS = 4


class Layer(torch.nn.Module):
    """Attention over a cache that it writes, and a feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)
        self.qkv = torch.nn.Linear(64, 192)
        self.up = torch.nn.Linear(64, 128)
        self.down = torch.nn.Linear(128, 64)

    def forward(self, x: torch.Tensor, cache: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(self.norm(x)).chunk(3, -1)
        cache[index] = key
        y = x + torch.softmax(query @ cache.t(), -1) @ cache + value
        return y + self.down(torch.nn.functional.gelu(self.up(y)))


class Stack(torch.nn.Module):
    """Several of these layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, x: torch.Tensor, caches: Any, index: torch.Tensor) -> torch.Tensor:
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, cache, index)
        return x


def seconds(*, verified: bool) -> float:
    """Return the CPU time to compile and run the stack once, by the graph backend."""
    model, x = Stack(), torch.randn(8, 64)
    caches, index = [torch.zeros(16, 64) for _ in range(LAYERS)], torch.arange(8)
    with Capture("inductor", "graph", verified=verified) as capture, torch.no_grad():
        start = time.process_time()
        torch.compile(model)(x, caches, index)
        spent = time.process_time() - start
    found = [graph.verified.status for graph in capture.checked_graphs if graph.verified]
    assert found == (["same"] if verified else [])
    return spent


def test_it_costs_at_most_as_much_as_compiling() -> None:
    seconds(verified=True)  # what is imported and traced once is paid here
    compiling, checking = (min(seconds(verified=verified) for _ in range(3)) for verified in (False, True))
    assert checking < 2 * compiling, f"{compiling:.2f} s without, {checking:.2f} s with it"
