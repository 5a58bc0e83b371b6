"""A training step of ``torch.optim.AdamW(foreach=True)`` on the parameters of a transformer."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Training:
    """Parameters with gradients, and their optimizer."""

    def __init__(self, parameters: list[torch.nn.Parameter]) -> None:
        self.parameters = parameters
        self.optimizer = torch.optim.AdamW(
            parameters, lr=1e-3, weight_decay=0.1, foreach=True, capturable=parameters[0].is_cuda
        )

    def step(self) -> None:
        """Update every parameter and both moments in place."""
        self.optimizer.step()


def step(device: str, *, layers: int, hidden: int, intermediate: int) -> Program:
    """Return an update of all weights of ``layers`` layers, after one that made the moments."""
    torch.manual_seed(0)
    shapes = [
        (hidden,),
        (3 * hidden, hidden),
        (hidden, hidden),
        (2 * intermediate, hidden),
        (hidden, intermediate),
    ]
    parameters = [
        torch.nn.Parameter(torch.randn(shape, device=device)) for _ in range(layers) for shape in shapes
    ]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    training = Training(parameters)
    training.step()
    return Program(training.step)
