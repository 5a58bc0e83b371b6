"""A user Triton kernel: residual addition and RMSNorm, both written in place."""

from __future__ import annotations

from typing import Any

import torch

from pytest_reinplace import Program


class Block(torch.nn.Module):
    """An MLP behind the fused norm."""

    def __init__(self, kernel: Any, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.weight = torch.nn.Parameter(torch.rand(hidden) + 0.5)
        self.up = torch.nn.Linear(hidden, intermediate, bias=False)
        self.down = torch.nn.Linear(intermediate, hidden, bias=False)

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return the next hidden states ``(rows, hidden)``; ``residual`` is updated in place."""
        rows, width = hidden.shape
        block = 1 << (width - 1).bit_length()
        self.kernel[(rows,)](hidden, residual, self.weight, width, 1e-5, BLOCK=block)
        return self.down(torch.nn.functional.silu(self.up(hidden)))


class Stack(torch.nn.Module):
    """Blocks over one residual stream, and the final norm."""

    def __init__(self, layers: int, hidden: int, intermediate: int) -> None:
        super().__init__()
        from .rms_norm_kernel import add_rms_norm

        self.blocks = torch.nn.ModuleList(Block(add_rms_norm, hidden, intermediate) for _ in range(layers))

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return the output of the last block; the caller's ``residual`` is updated in place."""
        for block in self.blocks:
            hidden = block(hidden, residual)
        return hidden


def forward(
    device: str, *, layers: int, hidden: int, intermediate: int, rows: int, dtype: str
) -> Program:
    """Return ``layers`` blocks on ``rows`` tokens."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Stack(layers, hidden, intermediate).to(getattr(torch, dtype)).eval()
        tokens, residual = torch.randn(2, rows, hidden, dtype=getattr(torch, dtype)).unbind()
    return Program(model, (tokens * 0.5, residual.clone()))
