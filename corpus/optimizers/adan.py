"""Adan: moments of gradients, of their differences, and of their squares with the difference ahead."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

from .weights import stepped, weights


class Adan(torch.optim.Optimizer):
    """Three moments, and the last gradient, negated, in a tensor that also holds what is squared."""

    def __init__(self, parameters: list[torch.nn.Parameter], rate: float, decay: float) -> None:
        super().__init__(parameters, {"rate": rate, "decay": decay, "betas": (0.98, 0.92, 0.99)})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update weights and moments."""
        for group in self.param_groups:
            first, second, third = group["betas"]
            for weight in group["params"]:
                state, grad = self.state[weight], weight.grad
                if not state:
                    state["step"] = torch.zeros((), device=weight.device)
                    state["average"], state["difference"] = torch.zeros_like(grad), torch.zeros_like(grad)
                    state["square"], state["last"] = torch.zeros_like(grad), -grad
                state["step"] += 1
                c1, c2, c3 = (1 - beta ** state["step"] for beta in group["betas"])
                last = state["last"].add_(grad)
                state["average"].mul_(first).add_(grad, alpha=1 - first)
                state["difference"].mul_(second).add_(last, alpha=1 - second)
                last.mul_(second).add_(grad)
                state["square"].mul_(third).addcmul_(last, last, value=1 - third)
                below = (state["square"].sqrt() / c3.sqrt()).add_(1e-8)
                update = (state["average"] / c1).add_(state["difference"] * (second / c2)).div_(below)
                weight.add_(update, alpha=-group["rate"]).div_(1 + group["rate"] * group["decay"])
                last.zero_().sub_(grad)


def step(device: str, *, layers: int, hidden: int, intermediate: int) -> Program:
    """Return one step."""
    return stepped(Adan(weights(device, layers, hidden, intermediate), 1e-3, 0.02))
