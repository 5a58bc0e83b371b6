"""Lion: the sign of a mixed momentum moves the weights, then the momentum is mixed once more."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

from .weights import stepped, weights


class Lion(torch.optim.Optimizer):
    """Momentum of one tensor a weight."""

    def __init__(self, parameters: list[torch.nn.Parameter], rate: float, decay: float) -> None:
        super().__init__(parameters, {"rate": rate, "decay": decay, "betas": (0.9, 0.99)})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update weights and momenta."""
        for group in self.param_groups:
            first, second = group["betas"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["momentum"] = torch.zeros_like(weight)
                momentum = state["momentum"]
                weight.mul_(1 - group["rate"] * group["decay"])
                update = momentum.mul(first).add_(weight.grad, alpha=1 - first).sign_()
                weight.add_(update, alpha=-group["rate"])
                momentum.lerp_(weight.grad, 1 - second)


def step(device: str, *, layers: int, hidden: int, intermediate: int) -> Program:
    """Return one step."""
    return stepped(Lion(weights(device, layers, hidden, intermediate), 1e-4, 0.1))
