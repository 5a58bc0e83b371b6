"""Replay buffers: rings of transitions that are written at a moving position, and drawn from."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Replay(torch.nn.Module):
    """Rings of observations, actions and rewards on the device; the position is a tensor too."""

    observations: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    done: torch.Tensor
    position: torch.Tensor

    def __init__(self, capacity: int, width: int, actions: int) -> None:
        super().__init__()
        self.capacity = capacity
        self.register_buffer("observations", torch.zeros(capacity, 2, width))
        self.register_buffer("actions", torch.zeros(capacity, actions))
        self.register_buffer("rewards", torch.zeros(capacity))
        self.register_buffer("done", torch.zeros(capacity, dtype=torch.bool))
        self.register_buffer("position", torch.full((1,), capacity - 2))

    def forward(
        self,
        observation: torch.Tensor,
        following: torch.Tensor,
        action: torch.Tensor,
        reward: torch.Tensor,
        done: torch.Tensor,
        drawn: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Write ``(environments, ...)``, then return what stands at the ``drawn`` places."""
        count = len(reward)
        place = (self.position + torch.arange(count, device=reward.device)) % self.capacity
        self.observations[place, 0] = observation
        self.observations[place, 1] = following
        self.actions[place] = action
        self.rewards[place] = reward
        self.done[place] = done
        self.position.add_(count).remainder_(self.capacity)
        return self.observations[drawn], self.actions[drawn], self.rewards[drawn], self.done[drawn]


class Wrapping(torch.nn.Module):
    """The same for one ring of frames with the position as a number: a write at the end is two slices."""

    frames: torch.Tensor

    def __init__(self, capacity: int, side: int, position: int) -> None:
        super().__init__()
        self.position = position
        self.register_buffer("frames", torch.zeros(capacity, side, side, dtype=torch.uint8))

    def forward(self, batch: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        """Write ``(count, side, side)`` bytes; return stacks of four frames at the ``drawn`` places."""
        capacity = len(self.frames)
        fits = min(len(batch), capacity - self.position)
        self.frames[self.position : self.position + fits] = batch[:fits]
        if fits < len(batch):
            self.frames[: len(batch) - fits] = batch[fits:]
        stacked = (drawn.unsqueeze(1) + torch.arange(4, device=drawn.device)) % capacity
        return self.frames[stacked].float().div_(255)


def remember(
    device: str, *, capacity: int, width: int, actions: int, environments: int, drawn: int
) -> Program:
    """Return a step of all environments and a batch of ``drawn`` transitions."""
    torch.manual_seed(0)
    with torch.device(device):
        arguments = (
            torch.randn(environments, width),
            torch.randn(environments, width),
            torch.randn(environments, actions),
            torch.randn(environments),
            torch.rand(environments) < 0.1,
            torch.randint(0, capacity, (drawn,)),
        )
        return Program(Replay(capacity, width, actions), arguments)


def frames(device: str, *, capacity: int, side: int, count: int, drawn: int) -> Program:
    """Return a write of ``count`` frames across the end of the ring."""
    torch.manual_seed(0)
    with torch.device(device):
        batch = torch.randint(0, 256, (count, side, side), dtype=torch.uint8)
        model = Wrapping(capacity, side, capacity - count // 2)
        return Program(model, (batch, torch.randint(0, capacity, (drawn,))))
