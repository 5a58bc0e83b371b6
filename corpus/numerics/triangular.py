"""Triangular systems by substitution: each row of the answer needs all rows before it."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Substitution(torch.nn.Module):
    """Solves lower triangular systems of a batch, forwards and then with the transpose, in the right side."""

    def forward(self, lower: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return ``right``, ``(batch, size, columns)``, now the answer for ``(batch, size, size)``."""
        size = lower.shape[1]
        for row in range(size):
            if row:
                right[:, row] -= (lower[:, row, :row].unsqueeze(1) @ right[:, :row]).squeeze(1)
            right[:, row] /= lower[:, row, row].unsqueeze(1)
        for row in reversed(range(size)):
            if row + 1 < size:
                below = lower[:, row + 1 :, row].unsqueeze(1) @ right[:, row + 1 :]
                right[:, row] -= below.squeeze(1)
            right[:, row] /= lower[:, row, row].unsqueeze(1)
        return right


class Inverse(torch.nn.Module):
    """Inverts unit lower triangular blocks row by row, as chunks of a delta rule need it."""

    def forward(self, keys: torch.Tensor, beta: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, chunks, chunk, width)`` values in which a chunk's own writes are accounted for.

        Args:
            keys: ``(batch, chunks, chunk, width)``.
            beta: how strongly each is written, ``(batch, chunks, chunk, 1)``.
            values: as ``keys``.
        """
        chunk = keys.shape[2]
        scaled = keys * beta
        attention = -(scaled @ keys.transpose(-1, -2)).tril(-1)
        for row in range(1, chunk):
            before = attention[..., row, :row].clone()
            inner = attention[..., :row, :row].clone()
            attention[..., row, :row] = before + (before.unsqueeze(-1) * inner).sum(-2)
        attention = attention + torch.eye(chunk, dtype=keys.dtype, device=keys.device)
        return attention @ (values * beta)


def solve(device: str, *, batch: int, size: int, columns: int) -> Program:
    """Return the solution of ``batch`` positive definite systems whose factors are known."""
    torch.manual_seed(0)
    with torch.device(device):
        lower = torch.randn(batch, size, size).tril_(-1) * size**-0.5 + 2 * torch.eye(size)
        return Program(Substitution(), (lower, torch.randn(batch, size, columns)))


def delta(device: str, *, batch: int, chunks: int, chunk: int, width: int) -> Program:
    """Return the chunks of a gated delta rule with their own writes accounted for."""
    torch.manual_seed(0)
    with torch.device(device):
        keys = torch.nn.functional.normalize(torch.randn(batch, chunks, chunk, width), dim=-1)
        beta = torch.rand(batch, chunks, chunk, 1)
        return Program(Inverse(), (keys, beta, torch.randn(batch, chunks, chunk, width)))
