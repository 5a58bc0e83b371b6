"""torchao's AdamW with moments of eight bits: its step of one weight, given its tensor subclasses."""

from __future__ import annotations

from typing import Any

import torch

from pytest_reinplace import Program

from .weights import weights


class AdamW8bit:
    """Codes and scales of both moments of each weight, as plain tensors, and a rate and a count.

    torchao keeps them in subclasses of tensors that cannot be copied; they are put together in each step.
    """

    def __init__(self, parameters: list[torch.nn.Parameter], moments: list[list[Any]]) -> None:
        self.parameters = parameters
        self.moments = moments
        device = parameters[0].device
        self.count: torch.Tensor = torch.zeros((), device=device)
        self.rate: torch.Tensor = torch.full((), 1e-3, device=device)

    @torch.no_grad()
    def step(self) -> None:
        """Update weights, codes and scales."""
        from torchao.optim.adam import single_param_adam
        from torchao.optim.subclass_8bit import OptimState8bit

        self.count += 1
        for weight, (first, second) in zip(self.parameters, self.moments, strict=True):
            average, square = OptimState8bit(*first, True), OptimState8bit(*second, False)
            arguments = (weight.detach(), weight.grad, self.count, average, square, None, self.rate)
            single_param_adam(*arguments, 0.9, 0.999, 0.01, 1e-8, True, False)


def step(device: str, *, layers: int, hidden: int, intermediate: int, block: int) -> Program:
    """Return one step."""
    from torchao.optim.subclass_8bit import OptimState8bit

    parameters = weights(device, layers, hidden, intermediate)
    moments = []
    for weight in parameters:
        states = [OptimState8bit.zeros(weight.shape, signed, block, device) for signed in (True, False)]
        moments.append([(state.codes, state.scale, state.qmap) for state in states])
    adam = AdamW8bit(parameters, moments)
    adam.step()
    return Program(adam.step)
