"""Adafactor: second moments as the product of a row and a column, updates clipped, no first moment."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

from .weights import stepped, weights


class Adafactor(torch.optim.Optimizer):
    """Means of squared gradients by rows and by columns; weights are half-precision and rounded back."""

    def __init__(self, parameters: list[torch.nn.Parameter], rate: float) -> None:
        super().__init__(parameters, {"rate": rate, "power": -0.8, "clip": 1.0})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update weights and both means."""
        for group in self.param_groups:
            for weight in group["params"]:
                state, grad = self.state[weight], weight.grad.float()
                if not state:
                    state["step"] = torch.zeros((), device=weight.device)
                    state["rows"] = torch.zeros_like(grad[:, 0])
                    state["columns"] = torch.zeros_like(grad[0])
                state["step"] += 1
                keep = 1 - state["step"] ** group["power"]
                square = grad.square().add_(1e-30)
                rows = state["rows"].mul_(keep).add_(square.mean(1) * (1 - keep))
                columns = state["columns"].mul_(keep).add_(square.mean(0) * (1 - keep))
                row_factor = (rows / rows.mean()).rsqrt_().unsqueeze(1)
                update = grad * row_factor * columns.rsqrt().unsqueeze(0)
                update.div_((update.square().mean().sqrt_() / group["clip"]).clamp_(min=1.0))
                full = weight.float()
                full.add_(update * full.square().mean().sqrt_().clamp_(min=1e-3), alpha=-group["rate"])
                weight.copy_(full)


def step(device: str, *, layers: int, hidden: int, intermediate: int, dtype: str) -> Program:
    """Return one step."""
    found = weights(device, layers, hidden, intermediate, getattr(torch, dtype))
    return stepped(Adafactor(found, 1e-2))
