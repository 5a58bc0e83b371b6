"""LAMB: Adam's update of each matrix, scaled so that it is as large as the matrix; all gradients clipped."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

from .weights import stepped, weights


class Lamb(torch.optim.Optimizer):
    """Two moments a weight; gradients are divided by their common norm in place."""

    def __init__(self, parameters: list[torch.nn.Parameter], rate: float, decay: float) -> None:
        super().__init__(parameters, {"rate": rate, "decay": decay, "betas": (0.9, 0.999), "clip": 1.0})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update weights and moments; gradients stay clipped."""
        for group in self.param_groups:
            first, second = group["betas"]
            square = torch.zeros((), device=group["params"][0].device)
            for weight in group["params"]:
                square.add_(weight.grad.pow(2).sum())
            clip = (square.sqrt() / group["clip"]).clamp_(min=1.0)
            for weight in group["params"]:
                state, grad = self.state[weight], weight.grad.div_(clip)
                if not state:
                    state["step"] = torch.zeros((), device=weight.device)
                    state["average"], state["square"] = torch.zeros_like(grad), torch.zeros_like(grad)
                state["step"].add_(1)
                average = state["average"].mul_(first).add_(grad, alpha=1 - first)
                squares = state["square"].mul_(second).addcmul_(grad, grad, value=1 - second)
                update = average / (1 - first ** state["step"])
                update.div_((squares / (1 - second ** state["step"])).sqrt_().add_(1e-6))
                update.add_(weight, alpha=group["decay"])
                length, size = weight.norm(), update.norm()
                trust = torch.where((length > 0) & (size > 0), length / size, 1.0)
                update.mul_(trust.clamp_(max=10.0))
                weight.add_(update, alpha=-group["rate"])


def step(device: str, *, layers: int, hidden: int, intermediate: int) -> Program:
    """Return one step."""
    return stepped(Lamb(weights(device, layers, hidden, intermediate), 1e-3, 0.01))
