"""Environments on the device: all poles and carts step at once, and those that fell are reset in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class CartPole(torch.nn.Module):
    """States of many carts with poles, how long each has lasted, and the returns of ended episodes."""

    state: torch.Tensor
    age: torch.Tensor
    returns: torch.Tensor

    def __init__(self, environments: int, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.register_buffer("state", 0.2 * torch.randn(environments, 4))
        self.register_buffer("age", torch.randint(0, limit, (environments,)))
        self.register_buffer("returns", torch.zeros(environments))

    def forward(
        self, actions: torch.Tensor, fresh: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return states, rewards and ends; ``fresh`` is where ended episodes begin anew, ``(envs, 4)``."""
        place, speed, angle, turn = self.state.unbind(1)
        force = actions * 20.0 - 10.0
        sine, cosine = angle.sin(), angle.cos()
        push = (force + 0.05 * turn.square() * sine) / 1.1
        twist = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine.square() / 1.1))
        drive = push - 0.05 * twist * cosine / 1.1
        place += 0.02 * speed
        speed += 0.02 * drive
        angle += 0.02 * turn
        turn += 0.02 * twist
        self.age += 1
        done = (place.abs() > 2.4) | (angle.abs() > 0.21) | (self.age >= self.limit)
        self.returns[done] = self.age[done].float()
        terminal = self.state.clone()
        self.state[done] = fresh[done]
        self.age.masked_fill_(done, 0)
        return terminal, torch.ones_like(angle), done


def step(device: str, *, environments: int, limit: int) -> Program:
    """Return one step of all environments."""
    torch.manual_seed(0)
    with torch.device(device):
        actions = torch.randint(0, 2, (environments,))
        return Program(CartPole(environments, limit), (actions, 0.05 * torch.randn(environments, 4)))
