"""Muon: momentum made orthogonal by Newton-Schulz iterations, matrices of one shape together."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

from .weights import stepped, weights


def orthogonalized(update: torch.Tensor, steps: int) -> torch.Tensor:
    """Return the nearest matrices with orthonormal rows or columns, about, of ``(..., rows, columns)``."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = update.bfloat16() if update.is_cuda else update.clone()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x /= x.norm(dim=(-2, -1), keepdim=True) + 1e-7
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Nesterov's momentum; the gradients are used up, as they are no longer wanted."""

    def __init__(self, parameters: list[torch.nn.Parameter], rate: float) -> None:
        super().__init__(parameters, {"rate": rate, "momentum": 0.95, "decay": 0.01})

    def mixed(self, weight: torch.Tensor, momentum: float) -> torch.Tensor:
        """Return the gradient, mixed with its momentum in place."""
        state = self.state[weight]
        assert weight.grad is not None
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        state["momentum"].lerp_(weight.grad, 1 - momentum)
        return weight.grad.lerp_(state["momentum"], momentum)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update weights and momenta, use up gradients."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[torch.Tensor]] = {}
            for weight in group["params"]:
                by_shape.setdefault(weight.shape, []).append(weight)
            for members in by_shape.values():
                mixed = [self.mixed(weight, group["momentum"]) for weight in members]
                updates = orthogonalized(torch.stack(mixed), 5)
                rows, columns = members[0].shape
                scale = max(1, rows / columns) ** 0.5
                for weight, update in zip(members, updates, strict=True):
                    weight.mul_(1 - group["rate"] * group["decay"])
                    weight.add_(update.to(weight.dtype), alpha=-group["rate"] * scale)


def step(device: str, *, layers: int, hidden: int, intermediate: int) -> Program:
    """Return one step."""
    return stepped(Muon(weights(device, layers, hidden, intermediate), 0.02))
