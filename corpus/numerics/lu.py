"""Gaussian elimination in place with partial pivoting: rows swapped by index, ranks of one removed."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Elimination(torch.nn.Module):
    """Factors matrices, keeps track of the swaps, and returns the logarithm of the determinant."""

    def forward(self, matrices: torch.Tensor, pivots: torch.Tensor) -> torch.Tensor:
        """Return ``(batch,)``; ``matrices`` is ``(batch, size, size)``, ``pivots`` is ``(batch, size)``."""
        batch, size, _ = matrices.shape
        every = torch.arange(batch, device=matrices.device)
        for k in range(size - 1):
            chosen = matrices[:, k:, k].abs().argmax(1) + k
            pivots[:, k] = chosen
            row = matrices[every, chosen].clone()
            matrices[every, chosen] = matrices[:, k]
            matrices[:, k] = row
            matrices[:, k + 1 :, k] /= row[:, k].unsqueeze(1)
            matrices[:, k + 1 :, k + 1 :].baddbmm_(
                matrices[:, k + 1 :, k : k + 1], matrices[:, k : k + 1, k + 1 :], alpha=-1
            )
        pivots[:, -1] = size - 1
        return matrices.diagonal(dim1=1, dim2=2).abs().log().sum(1)


def eliminate(device: str, *, batch: int, size: int) -> Program:
    """Return the factors of ``batch`` matrices, in place."""
    torch.manual_seed(0)
    with torch.device(device):
        pivots = torch.zeros(batch, size, dtype=torch.int64)
        return Program(Elimination(), (torch.randn(batch, size, size), pivots))
