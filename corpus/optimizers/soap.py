"""SOAP: Adam in the slowly turning basis of Shampoo's two factors of each matrix."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

from .weights import stepped, weights


class Soap(torch.optim.Optimizer):
    """Moments in the basis, the factors, and the basis, which is refreshed by one QR step."""

    def __init__(self, parameters: list[torch.nn.Parameter], rate: float, refresh: bool) -> None:
        super().__init__(parameters, {"rate": rate, "betas": (0.95, 0.95), "decay": 0.01, "refresh": refresh})

    def start(self, weight: torch.Tensor, grad: torch.Tensor) -> None:
        """Make a weight's state of its first gradient."""
        state = self.state[weight]
        state["average"] = torch.zeros_like(weight)
        state["square"] = torch.zeros_like(weight)
        for side, factor in (("left", grad @ grad.T), ("right", grad.T @ grad)):
            # As after many steps: of one gradient alone most directions of the basis would be arbitrary.
            factor.diagonal().add_(torch.linspace(1, len(factor), len(factor), device=grad.device))
            state[side] = factor
            state[side + "_basis"] = torch.linalg.eigh(factor).eigenvectors.flip(1).contiguous()
        state["step"] = torch.zeros((), device=grad.device)

    def turn(self, weight: torch.Tensor, beta: float) -> None:
        """Move the factors, and the basis by a step of orthogonal iteration; the moments follow."""
        state, grad = self.state[weight], weight.grad
        assert grad is not None
        state["left"].lerp_(grad @ grad.T, 1 - beta)
        state["right"].lerp_(grad.T @ grad, 1 - beta)
        state["average"].copy_(state["left_basis"] @ state["average"] @ state["right_basis"].T)
        for axis, side in enumerate(("left", "right")):
            factor, basis = state[side], state[side + "_basis"]
            order = torch.diagonal(basis.T @ factor @ basis).argsort(descending=True)
            state["square"].copy_(state["square"].index_select(axis, order))
            basis.copy_(torch.linalg.qr(factor @ basis[:, order]).Q)
        state["average"].copy_(state["left_basis"].T @ state["average"] @ state["right_basis"])

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update weights, moments, factors and bases."""
        for group in self.param_groups:
            first, second = group["betas"]
            for weight in group["params"]:
                state, grad = self.state[weight], weight.grad
                if not state:
                    self.start(weight, grad)
                state["step"] += 1
                left, right = state["left_basis"], state["right_basis"]
                turned = left.T @ grad @ right
                state["average"].lerp_(turned, 1 - first)
                state["square"].mul_(second).addcmul_(turned, turned, value=1 - second)
                scale = (1 - second ** state["step"]).sqrt() / (1 - first ** state["step"])
                update = state["average"] / (state["square"].sqrt() + 1e-8) * scale
                weight.sub_(left @ update @ right.T * group["rate"])
                weight.mul_(1 - group["rate"] * group["decay"])
                if group["refresh"]:
                    self.turn(weight, second)


def step(device: str, *, layers: int, hidden: int, intermediate: int, refresh: bool) -> Program:
    """Return one step, with or without a turn of the bases."""
    return stepped(Soap(weights(device, layers, hidden, intermediate), 3e-3, refresh))
