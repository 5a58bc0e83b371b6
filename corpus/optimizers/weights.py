"""Weights of a small transformer with gradients, and the step that is compiled."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Step:
    """An optimizer whose state is there already, and one step of it."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    def step(self) -> None:
        """Update weights and states in place."""
        self.optimizer.step()


def weights(
    device: str, layers: int, hidden: int, intermediate: int, dtype: torch.dtype = torch.float32
) -> list[torch.nn.Parameter]:
    """Return the matrices of ``layers`` layers, each with a gradient."""
    torch.manual_seed(0)
    layer = [(3 * hidden, hidden), (hidden, hidden), (2 * intermediate, hidden), (hidden, intermediate)]
    found = []
    with torch.device(device):
        for shape in layer * layers:
            weight = torch.nn.Parameter(torch.randn(shape, dtype=dtype) * hidden**-0.5)
            weight.grad = torch.randn(shape, dtype=dtype)
            found.append(weight)
    return found


def begin(optimizer: torch.optim.Optimizer) -> None:
    """Make an optimizer's state by a first step, and new gradients for the next."""
    optimizer.step()
    for group in optimizer.param_groups:
        for weight in group["params"]:
            weight.grad = torch.randn_like(weight)


def stepped(optimizer: torch.optim.Optimizer) -> Program:
    """Return a step of an optimizer, after one that made its state."""
    begin(optimizer)
    return Program(Step(optimizer).step)
