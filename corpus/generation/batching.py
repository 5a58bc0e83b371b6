"""Continuous batching on the device: slots are advanced and those that end are freed, in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Slots(torch.nn.Module):
    """Tokens, positions, block tables and free blocks of a server's running requests."""

    tokens: torch.Tensor
    positions: torch.Tensor
    tables: torch.Tensor
    running: torch.Tensor
    free: torch.Tensor
    used: torch.Tensor

    def __init__(self, slots: int, capacity: int, block: int) -> None:
        super().__init__()
        self.block = block
        self.register_buffer("tokens", torch.zeros(slots, capacity, dtype=torch.int64))
        self.register_buffer("positions", torch.randint(1, capacity // 2, (slots,)))
        self.register_buffer("tables", torch.zeros(slots, capacity // block, dtype=torch.int64))
        self.register_buffer("running", torch.ones(slots, dtype=torch.bool))
        self.register_buffer("free", torch.randperm(slots * capacity // block))
        self.register_buffer("used", torch.zeros(1, dtype=torch.int64))

    def forward(self, sampled: torch.Tensor, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the cache slots that ``(slots,)`` tokens go to, and the tokens for the next step."""
        rows = torch.arange(len(sampled), device=sampled.device)
        sampled = torch.where(self.running, sampled, 0)
        self.tokens[rows, self.positions] = sampled
        # A request whose token is the first of a block takes one from the free list.
        wants = (self.positions % self.block == 0) & self.running
        place = self.used + wants.long().cumsum(0) - 1
        taken = self.free[place.clamp(min=0)]
        entry = self.positions // self.block
        self.tables[rows, entry] = torch.where(wants, taken, self.tables[rows, entry])
        self.used += wants.sum()
        slot = self.tables[rows, entry] * self.block + self.positions % self.block
        slot.masked_fill_(~self.running, -1)
        self.running &= sampled != end
        self.positions += self.running
        return slot, sampled


def advance(device: str, *, slots: int, capacity: int, block: int, vocab: int) -> Program:
    """Return one step of all slots."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Slots(slots, capacity, block), (torch.randint(0, vocab, (slots,)), 2))
