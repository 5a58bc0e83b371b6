"""Stochastic gradient descent with momentum: every weight and every momentum buffer is written in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Descent:
    """Parameters with gradients, and their optimizer."""

    def __init__(self, parameters: list[torch.nn.Parameter]) -> None:
        self.parameters = parameters
        self.optimizer: torch.optim.SGD = torch.optim.SGD(
            parameters, lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True, foreach=True
        )

    def step(self) -> None:
        """Update momentum buffers and weights in place."""
        self.optimizer.step()


def step(device: str, *, stages: int, channels: int, classes: int) -> Program:
    """Return an update of a convolutional network whose width doubles from stage to stage."""
    torch.manual_seed(0)
    shapes: list[tuple[int, ...]] = [(channels, 3, 7, 7)]
    width = channels
    for _ in range(stages):
        shapes += [(2 * width, width, 3, 3), (2 * width,), (2 * width, 2 * width, 3, 3), (2 * width,)]
        width *= 2
    shapes += [(classes, width), (classes,)]
    with torch.device(device):
        parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
    descent = Descent(parameters)
    descent.step()  # makes the momentum buffers
    return Program(descent.step)
