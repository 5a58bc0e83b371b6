"""An exponential moving average of a model's weights and buffers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.optim.swa_utils import get_ema_multi_avg_fn

from pytest_reinplace import Program


class Average(torch.nn.Module):
    """A model and the average of its weights."""

    updates: torch.Tensor

    def __init__(self, model: torch.nn.Module, averaged: torch.nn.Module, decay: float) -> None:
        super().__init__()
        self.model = model
        self.averaged = averaged
        self.decay = decay
        self.move: Callable[..., None] = get_ema_multi_avg_fn(decay)
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))

    def forward(self) -> torch.Tensor:
        """Move the average towards the model: weights as one foreach lerp, buffers one by one."""
        weights = [parameter.detach() for parameter in self.model.parameters()]
        averages = [parameter.detach() for parameter in self.averaged.parameters()]
        self.move(averages, weights, self.updates)
        for average, value in zip(self.averaged.buffers(), self.model.buffers(), strict=True):
            if average.is_floating_point():
                average.lerp_(value, 1 - self.decay)
            else:
                average.copy_(value)
        self.updates += 1
        distance: torch.Tensor = (averages[-1] - weights[-1]).norm()
        return distance


def _network(blocks: int, channels: int) -> torch.nn.Module:
    layers: list[torch.nn.Module] = []
    for _ in range(blocks):
        layers += [
            torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            torch.nn.BatchNorm2d(channels),
            torch.nn.Linear(channels, 4 * channels),
        ]
    return torch.nn.Sequential(*layers)


def update(device: str, *, blocks: int, channels: int, decay: float) -> Program:
    """Return one update of the average of ``blocks`` blocks of ``channels`` channels."""
    torch.manual_seed(0)
    with torch.device(device):
        model, averaged = (_network(blocks, channels) for _ in range(2))
        return Program(Average(model, averaged, decay))
