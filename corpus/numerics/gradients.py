"""Conjugate gradients with operators in place: three vectors that live through all iterations."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class ConjugateGradients(torch.nn.Module):
    """Solves systems with a Laplacian that is never built, warm from the last answer."""

    answer: torch.Tensor

    def __init__(self, batch: int, side: int, iterations: int) -> None:
        super().__init__()
        self.iterations = iterations
        self.register_buffer("answer", torch.zeros(batch, side, side))

    def product(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``4.1 x`` less the neighbours of each point."""
        y = 4.1 * x
        y[:, 1:] -= x[:, :-1]
        y[:, :-1] -= x[:, 1:]
        y[:, :, 1:] -= x[:, :, :-1]
        y[:, :, :-1] -= x[:, :, 1:]
        return y

    def forward(self, right: torch.Tensor) -> torch.Tensor:
        """Return the squared residuals, ``(iterations, batch)``; the answer is kept."""
        x = self.answer
        residual = right - self.product(x)
        direction = residual.clone()
        square = residual.square().sum((1, 2), keepdim=True)
        history = right.new_empty(self.iterations, right.shape[0])
        for number in range(self.iterations):
            image = self.product(direction)
            alpha = square / (direction * image).sum((1, 2), keepdim=True)
            x.addcmul_(alpha, direction)
            residual.addcmul_(alpha, image, value=-1)
            last, square = square, residual.square().sum((1, 2), keepdim=True)
            direction.mul_(square / last).add_(residual)
            history[number] = square.flatten()
        return history


def solve(device: str, *, batch: int, side: int, iterations: int) -> Program:
    """Return ``iterations`` iterations of ``batch`` systems."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(ConjugateGradients(batch, side, iterations), (torch.randn(batch, side, side),))
