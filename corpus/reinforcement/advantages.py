"""Rollouts: rows that are written as time goes on, and advantages that are computed backwards in them."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Rollout(torch.nn.Module):
    """Values, rewards and ends of many environments, and what is made of them once a rollout is full."""

    advantages: torch.Tensor

    def __init__(self, steps: int, environments: int, discount: float, decay: float) -> None:
        super().__init__()
        self.discount = discount
        self.decay = decay
        self.register_buffer("advantages", torch.zeros(steps, environments))

    def forward(
        self, values: torch.Tensor, rewards: torch.Tensor, done: torch.Tensor, last: torch.Tensor
    ) -> torch.Tensor:
        """Return the returns, ``(steps, environments)``, of rows of that shape; ``last`` is one row."""
        steps = len(rewards)
        running = torch.zeros_like(last)
        for t in reversed(range(steps)):
            following = last if t == steps - 1 else values[t + 1]
            going = 1.0 - done[t]
            delta = rewards[t] + self.discount * following * going - values[t]
            running = delta + self.discount * self.decay * going * running
            self.advantages[t] = running
        returns = self.advantages + values
        self.advantages -= self.advantages.mean()
        self.advantages /= self.advantages.std() + 1e-8
        return returns


class Vtrace(torch.nn.Module):
    """Corrected targets of an actor that lags behind, accumulated from the end into the output's rows."""

    def forward(
        self, logs: torch.Tensor, values: torch.Tensor, rewards: torch.Tensor, discounts: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return targets and advantages, ``(steps, environments)``; ``values`` has a row more."""
        weights = logs.exp().clamp_(max=1.0)
        deltas = weights * (rewards + discounts * values[1:] - values[:-1])
        targets = torch.empty_like(values)
        targets[-1] = 0
        for t in reversed(range(len(rewards))):
            targets[t] = deltas[t] + discounts[t] * weights[t] * targets[t + 1]
        targets += values
        advantages = weights * (rewards + discounts * targets[1:] - values[:-1])
        return targets[:-1], advantages


def estimate(device: str, *, steps: int, environments: int) -> Program:
    """Return generalized advantages of a rollout."""
    torch.manual_seed(0)
    with torch.device(device):
        values, rewards = torch.randn(2, steps, environments)
        done = (torch.rand(steps, environments) < 0.1).float()
        model = Rollout(steps, environments, 0.99, 0.95)
        return Program(model, (values.clone(), rewards.clone(), done, torch.randn(environments)))


def vtrace(device: str, *, steps: int, environments: int) -> Program:
    """Return V-trace's targets of a rollout."""
    torch.manual_seed(0)
    with torch.device(device):
        shape = (steps, environments)
        values = torch.randn(steps + 1, environments)
        arguments = (0.3 * torch.randn(shape), values, torch.randn(shape), 0.99 * torch.ones(shape))
        return Program(Vtrace(), arguments)
