"""Mixture of experts: tokens are permuted into one buffer per expert, and added back with their weights."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Experts(torch.nn.Module):
    """Experts of fixed capacity, and the router in front of them."""

    def __init__(self, experts: int, hidden: int, intermediate: int, top: int, capacity: int) -> None:
        super().__init__()
        self.top = top
        self.router: torch.nn.Linear = torch.nn.Linear(hidden, experts, bias=False)
        self.up: torch.nn.Parameter = torch.nn.Parameter(
            torch.randn(experts, hidden, intermediate) * hidden**-0.5
        )
        self.down: torch.nn.Parameter = torch.nn.Parameter(
            torch.randn(experts, intermediate, hidden) * intermediate**-0.5
        )
        self.capacity = capacity

    def forward(self, tokens: torch.Tensor, load: torch.Tensor) -> torch.Tensor:
        """Return ``(tokens, hidden)``; adds the tokens of each expert to ``load`` in place."""
        weight, expert = self.router(tokens).softmax(-1).topk(self.top)
        order = expert.flatten().argsort(stable=True)
        chosen, source = expert.flatten()[order], order // self.top
        counts = torch.zeros_like(load).index_add_(0, chosen, torch.ones_like(chosen))
        slot = torch.arange(chosen.numel(), device=tokens.device) - (counts.cumsum(0) - counts)[chosen]
        slot = slot.clamp(max=self.capacity)
        permuted = tokens.new_zeros(load.numel(), self.capacity + 1, tokens.shape[1])
        permuted[chosen, slot] = tokens[source]
        result = torch.bmm(torch.nn.functional.silu(torch.bmm(permuted, self.up)), self.down)
        result[:, self.capacity] = 0
        output = torch.zeros_like(tokens)
        output.index_add_(0, source, result[chosen, slot] * weight.flatten()[order, None])
        load.index_add_(0, chosen, torch.ones_like(chosen))
        return output


class Stack(torch.nn.Module):
    """Layers of experts with residual connections."""

    def __init__(
        self, layers: int, experts: int, hidden: int, intermediate: int, top: int, capacity: int
    ) -> None:
        super().__init__()
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Experts(experts, hidden, intermediate, top, capacity) for _ in range(layers)
        )

    def forward(self, tokens: torch.Tensor, loads: torch.Tensor) -> torch.Tensor:
        """Return the tokens after the last layer; counts into ``loads``, ``(layers, experts)``."""
        for layer, load in zip(self.layers, loads.unbind(), strict=True):
            tokens = tokens + layer(torch.nn.functional.layer_norm(tokens, tokens.shape[-1:]), load)
        return tokens


def forward(
    device: str,
    *,
    layers: int,
    experts: int,
    hidden: int,
    intermediate: int,
    top: int,
    tokens: int,
    dtype: str,
) -> Program:
    """Return ``layers`` layers on ``tokens`` tokens; an expert takes twice its fair share at most."""
    torch.manual_seed(0)
    capacity = 2 * tokens * top // experts
    with torch.device(device):
        model = Stack(layers, experts, hidden, intermediate, top, capacity).to(getattr(torch, dtype)).eval()
        inputs = torch.randn(tokens, hidden, dtype=getattr(torch, dtype))
        loads = torch.zeros(layers, experts, dtype=torch.int64)
    return Program(model, (inputs, loads))
