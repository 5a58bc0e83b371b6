"""Adam with moments of eight bits: codes into a table of values, and a scale for each block."""

from __future__ import annotations

import torch

from pytest_reinplace import Program

from .weights import stepped, weights


def table(signed: bool, device: torch.device) -> torch.Tensor:
    """Return 256 values from -1 or 0 to 1, closer to each other near zero."""
    positive = torch.linspace(0, 1, 129 if signed else 257, device=device)[1:] ** 2
    return torch.cat([-positive.flip(0), positive]) if signed else positive


class Moment:
    """A moment in blocks of codes, one byte each, with the largest magnitude of every block."""

    def __init__(self, like: torch.Tensor, signed: bool, block: int) -> None:
        self.shape: torch.Size = like.shape
        self.table: torch.Tensor = table(signed, like.device)
        self.borders: torch.Tensor = (self.table[1:] + self.table[:-1]) / 2
        self.codes: torch.Tensor = torch.zeros(
            like.numel() // block, block, dtype=torch.uint8, device=like.device
        )
        self.scales: torch.Tensor = torch.zeros(len(self.codes), 1, device=like.device)

    def read(self) -> torch.Tensor:
        """Return the moment in single precision."""
        return (self.table[self.codes.int()] * self.scales).view(self.shape)

    def write(self, value: torch.Tensor) -> None:
        """Quantize a moment into the codes and scales."""
        blocks = value.view(self.codes.shape)
        torch.amax(blocks.abs(), 1, keepdim=True, out=self.scales)
        self.scales.clamp_(min=1e-12)
        self.codes.copy_(torch.bucketize(blocks / self.scales, self.borders))


class EightBit(torch.optim.Optimizer):
    """Adam with decoupled decay; moments are read, moved on and written back."""

    def __init__(self, parameters: list[torch.nn.Parameter], rate: float, block: int) -> None:
        super().__init__(parameters, {"rate": rate, "betas": (0.9, 0.999), "decay": 0.01})
        for weight in parameters:
            state = self.state[weight]
            state["step"] = torch.zeros((), device=weight.device)
            state["average"] = Moment(weight, True, block)
            state["square"] = Moment(weight, False, block)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update weights and moments."""
        for group in self.param_groups:
            first, second = group["betas"]
            for weight in group["params"]:
                state, grad = self.state[weight], weight.grad
                state["step"] += 1
                average = state["average"].read().lerp_(grad, 1 - first)
                square = state["square"].read().mul_(second).addcmul_(grad, grad, value=1 - second)
                state["average"].write(average)
                state["square"].write(square)
                average.div_(1 - first ** state["step"])
                below = square.div_(1 - second ** state["step"]).sqrt_().add_(1e-6)
                weight.mul_(1 - group["rate"] * group["decay"])
                weight.addcdiv_(average, below, value=-group["rate"])


def step(device: str, *, layers: int, hidden: int, intermediate: int, block: int) -> Program:
    """Return one step."""
    return stepped(EightBit(weights(device, layers, hidden, intermediate), 1e-3, block))
