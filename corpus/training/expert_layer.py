"""A mixture of experts in training: tokens dispatched into slots of fixed capacity, and combined again."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Experts(torch.nn.Module):
    """A router, experts in one batched product, and counts that balance the experts without a loss."""

    bias: torch.Tensor
    load: torch.Tensor

    def __init__(self, experts: int, chosen: int, hidden: int, wide: int, capacity: int) -> None:
        super().__init__()
        self.chosen = chosen
        self.capacity = capacity
        self.router: torch.nn.Linear = torch.nn.Linear(hidden, experts, bias=False)
        self.up: torch.nn.Parameter = torch.nn.Parameter(torch.randn(experts, hidden, wide) * hidden**-0.5)
        self.down: torch.nn.Parameter = torch.nn.Parameter(torch.randn(experts, wide, hidden) * wide**-0.5)
        self.register_buffer("bias", torch.zeros(experts))
        self.register_buffer("load", torch.zeros(experts))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return ``(tokens, hidden)``; moves the balance of the experts in place."""
        count, hidden = tokens.shape
        experts = len(self.bias)
        scores = self.router(tokens).sigmoid()
        index = (scores.detach() + self.bias).topk(self.chosen, dim=1).indices
        weight = scores.gather(1, index)
        weight = weight / weight.sum(1, keepdim=True)
        flat = index.flatten()
        taken = torch.zeros(len(flat), experts, device=tokens.device, dtype=torch.int64)
        taken.scatter_(1, flat.unsqueeze(1), 1)
        place = (taken.cumsum(0).gather(1, flat.unsqueeze(1)) - 1).squeeze(1)
        fits = place < self.capacity
        slot = torch.where(fits, flat * self.capacity + place, experts * self.capacity)
        source = torch.arange(count, device=tokens.device).repeat_interleave(self.chosen)
        inputs = tokens.new_zeros(experts * self.capacity + 1, hidden)
        inputs[slot] = tokens[source]
        middle = torch.nn.functional.silu(inputs[:-1].view(experts, self.capacity, hidden) @ self.up)
        outputs = (middle @ self.down).flatten(0, 1)
        outputs = torch.cat([outputs, outputs.new_zeros(1, hidden)])
        result = torch.zeros_like(tokens)
        result.index_add_(0, source, outputs[slot] * (weight.flatten() * fits).unsqueeze(1))
        with torch.no_grad():
            load = taken.sum(0).float()
            self.load.mul_(0.9).add_(load, alpha=0.1)
            self.bias.add_(torch.sign(load.mean() - load), alpha=1e-3)
        return result


class Layers(torch.nn.Module):
    """Layers of experts with residual connections."""

    def __init__(self, layers: int, experts: int, chosen: int, hidden: int, wide: int, capacity: int) -> None:
        super().__init__()
        self.norms: torch.nn.ModuleList = torch.nn.ModuleList(torch.nn.RMSNorm(hidden) for _ in range(layers))
        self.layers: torch.nn.ModuleList = torch.nn.ModuleList(
            Experts(experts, chosen, hidden, wide, capacity) for _ in range(layers)
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return ``(tokens, hidden)``."""
        for norm, layer in zip(self.norms, self.layers, strict=True):
            tokens = tokens + layer(norm(tokens))
        scaled: torch.Tensor = tokens * len(tokens) ** -0.5
        return scaled


def training(
    device: str,
    *,
    layers: int,
    experts: int,
    chosen: int,
    hidden: int,
    wide: int,
    capacity: int,
    tokens: int,
) -> Program:
    """Return forward and backward of layers of experts, of which a few slots overflow."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Layers(layers, experts, chosen, hidden, wide, capacity)
        return Program(model, (torch.randn(tokens, hidden),))
