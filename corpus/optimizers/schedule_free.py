"""Schedule-free AdamW: the weights are interpolated between where gradients are taken and an average."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

from .weights import stepped, weights


class ScheduleFree(torch.optim.Optimizer):
    """A second point for each weight, a second moment, and the weight of the average, in tensors."""

    def __init__(self, parameters: list[torch.nn.Parameter], rate: float, warmup: int) -> None:
        device = parameters[0].device
        counters = {"step": torch.zeros((), device=device), "total": torch.zeros((), device=device)}
        super().__init__(parameters, {"rate": rate, "warmup": warmup, "betas": (0.9, 0.999), **counters})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update both points of each weight, and the second moments."""
        for group in self.param_groups:
            first, second = group["betas"]
            group["step"] += 1
            rate = group["rate"] * (group["step"] / group["warmup"]).clamp(max=1)
            group["total"] += rate.square()
            share = rate.square() / group["total"]
            correction = (1 - second ** group["step"]).sqrt()
            for weight in group["params"]:
                state, grad = self.state[weight], weight.grad
                if not state:
                    state["z"] = weight.clone()
                    state["square"] = torch.zeros_like(weight)
                state["square"].mul_(second).addcmul_(grad, grad, value=1 - second)
                scaled = grad.div_(state["square"].sqrt().div_(correction).add_(1e-8))
                scaled.add_(weight, alpha=0.1)
                weight.lerp_(state["z"], share)
                weight.add_(scaled * (rate * (first * (1 - share) - 1)))
                state["z"].sub_(scaled * rate)


def step(device: str, *, layers: int, hidden: int, intermediate: int) -> Program:
    """Return one step."""
    return stepped(ScheduleFree(weights(device, layers, hidden, intermediate), 1e-3, 10))
