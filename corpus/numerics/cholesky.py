"""Cholesky's factorization in the matrix itself, by columns and by blocks."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Columns(torch.nn.Module):
    """Right-looking, a column at a time: the rest of the matrix loses what the column explains."""

    def forward(self, matrices: torch.Tensor) -> torch.Tensor:
        """Return ``matrices``, ``(batch, size, size)``, whose lower halves hold their factors."""
        size = matrices.shape[-1]
        for k in range(size):
            matrices[:, k, k].sqrt_()
            matrices[:, k + 1 :, k].div_(matrices[:, k, k].unsqueeze(1))
            column = matrices[:, k + 1 :, k]
            matrices[:, k + 1 :, k + 1 :] -= column.unsqueeze(2) * column.unsqueeze(1)
        return matrices.tril_()


class Blocks(torch.nn.Module):
    """The same a block at a time, with a library's factor and solve for the block and what is below."""

    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block

    def forward(self, matrices: torch.Tensor) -> torch.Tensor:
        """Return ``matrices``, ``(batch, size, size)``, whose lower halves hold their factors."""
        for start in range(0, matrices.shape[-1], self.block):
            stop = start + self.block
            corner = matrices[:, start:stop, start:stop]
            corner.copy_(torch.linalg.cholesky(corner))
            below = matrices[:, stop:, start:stop]
            if below.shape[1]:
                solved = torch.linalg.solve_triangular(corner.mT, below, upper=True, left=False)
                below.copy_(solved)
                matrices[:, stop:, stop:].baddbmm_(solved, solved.mT, alpha=-1)
        return matrices.tril_()


def factor(device: str, *, batch: int, size: int, block: int) -> Program:
    """Return the factors of positive definite matrices, by columns where ``block`` is zero."""
    torch.manual_seed(0)
    with torch.device(device):
        root = torch.randn(batch, size, size)
        matrices = root @ root.mT / size + torch.eye(size)
        return Program(Blocks(block) if block else Columns(), (matrices,))
