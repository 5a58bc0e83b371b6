"""A user Triton kernel: residual addition and RMSNorm, both written in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Block(torch.nn.Module):
    """An MLP behind the fused norm."""

    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.weight: torch.nn.Parameter = torch.nn.Parameter(torch.rand(hidden) + 0.5)
        self.up: torch.nn.Linear = torch.nn.Linear(hidden, intermediate, bias=False)
        self.down: torch.nn.Linear = torch.nn.Linear(intermediate, hidden, bias=False)

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return the next hidden states ``(rows, hidden)``; ``residual`` is updated in place."""
        from .rms_norm_kernel import add_rms_norm

        rows, width = hidden.shape
        block = 1 << (width - 1).bit_length()
        add_rms_norm[(rows,)](hidden, residual, self.weight, width, 1e-5, BLOCK=block)
        output: torch.Tensor = self.down(torch.nn.functional.silu(self.up(hidden)))
        return output


class Stack(torch.nn.Module):
    """Blocks over one residual stream."""

    def __init__(self, layers: int, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.blocks: torch.nn.ModuleList = torch.nn.ModuleList(
            Block(hidden, intermediate) for _ in range(layers)
        )

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return the output of the last block; the caller's tensors are updated in place."""
        for block in self.blocks:
            hidden = block(hidden, residual)
        return hidden


def forward(device: str, *, layers: int, hidden: int, intermediate: int, rows: int, dtype: str) -> Program:
    """Return ``layers`` blocks on ``rows`` tokens."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Stack(layers, hidden, intermediate).to(getattr(torch, dtype)).eval()
        tokens, residual = torch.randn(2, rows, hidden, dtype=getattr(torch, dtype)).unbind()
    return Program(model, (tokens * 0.5, residual.clone()))
