"""Linear attention by its recurrence: a state is decayed, corrected and read at each step."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class DeltaRule(torch.nn.Module):
    """The gated delta rule, token by token: the state forgets, is corrected towards a value, and is read."""

    state: torch.Tensor

    def __init__(self, batch: int, heads: int, width: int) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(batch, heads, width, width))

    def forward(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        gates: torch.Tensor,
        beta: torch.Tensor,
    ) -> torch.Tensor:
        """Return ``(batch, heads, length, width)``; gates and betas have no last dimension."""
        outputs = torch.zeros_like(values)
        for t in range(queries.shape[2]):
            key, value = keys[:, :, t], values[:, :, t]
            self.state.mul_(gates[:, :, t].exp()[..., None, None])
            known = (self.state * key.unsqueeze(-1)).sum(-2)
            change = (value - known) * beta[:, :, t].unsqueeze(-1)
            self.state.add_(key.unsqueeze(-1) * change.unsqueeze(-2))
            outputs[:, :, t] = (self.state * queries[:, :, t].unsqueeze(-1)).sum(-2)
        return outputs


def attend(device: str, *, batch: int, heads: int, width: int, length: int) -> Program:
    """Return ``length`` tokens that are read and remembered."""
    torch.manual_seed(0)
    with torch.device(device):
        rows = torch.nn.functional.normalize(torch.randn(3, batch, heads, length, width), dim=-1)
        gates = -torch.rand(batch, heads, length)
        beta = torch.rand(batch, heads, length)
        return Program(DeltaRule(batch, heads, width), (rows[0], rows[1], rows[2], gates, beta))
