"""Transforms in place: Hadamard's butterflies, and prefix sums by up- and down-sweeps."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Hadamard(torch.nn.Module):
    """Rotates activations by Walsh and Hadamard's matrix before they are quantized, pairs by pairs."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return ``rows``, ``(tokens, width)``, whose width is a power of two."""
        width = rows.shape[1]
        half = 1
        while half < width:
            pairs = rows.view(rows.shape[0], width // (2 * half), 2, half)
            left, right = pairs[:, :, 0], pairs[:, :, 1]
            total = left + right
            right.neg_().add_(left)
            left.copy_(total)
            half *= 2
        return rows.mul_(width**-0.5)


class Blelloch(torch.nn.Module):
    """Exclusive prefix sums in the tree that the values themselves become."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return ``values``, ``(rows, length)``, whose length is a power of two."""
        length = values.shape[1]
        step = 1
        while step < length:
            values[:, 2 * step - 1 :: 2 * step] += values[:, step - 1 :: 2 * step]
            step *= 2
        values[:, -1] = 0
        while step > 1:
            step //= 2
            left = values[:, step - 1 :: 2 * step].clone()
            values[:, step - 1 :: 2 * step] = values[:, 2 * step - 1 :: 2 * step]
            values[:, 2 * step - 1 :: 2 * step] += left
        return values


def hadamard(device: str, *, tokens: int, width: int) -> Program:
    """Return rotated activations."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Hadamard(), (torch.randn(tokens, width),))


def prefix(device: str, *, rows: int, length: int) -> Program:
    """Return exclusive prefix sums."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Blelloch(), (torch.rand(rows, length),))
