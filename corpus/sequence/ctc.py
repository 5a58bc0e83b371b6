"""Connectionist temporal classification: the forward variables, a row of blanks and labels a frame."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Alphas(torch.nn.Module):
    """The loss from a table of forward variables that is filled row by row, as tutorials write it."""

    def forward(self, scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return ``(batch,)``; ``scores`` is ``(frames, batch, symbols)``, ``labels`` ``(batch, length)``."""
        frames, batch, _ = scores.shape
        logs = scores.log_softmax(2)
        extended = labels.new_zeros(batch, 2 * labels.shape[1] + 1)
        extended[:, 1::2] = labels
        may_skip = torch.zeros_like(extended, dtype=torch.bool)
        may_skip[:, 2:] = (extended[:, 2:] != 0) & (extended[:, 2:] != extended[:, :-2])
        alpha = logs.new_full((frames, batch, extended.shape[1] + 2), -1e4)
        alpha[0, :, 2] = logs[0, :, 0]
        alpha[0, :, 3] = logs[0].gather(1, extended[:, 1:2]).squeeze(1)
        for t in range(1, frames):
            before = alpha[t - 1]
            skipped = before[:, :-2].masked_fill(~may_skip, -1e4)
            paths = torch.stack([before[:, 2:], before[:, 1:-1], skipped])
            alpha[t, :, 2:] = torch.logsumexp(paths, 0) + logs[t].gather(1, extended)
        return -torch.logaddexp(alpha[-1, :, -1], alpha[-1, :, -2])


def loss(device: str, *, frames: int, batch: int, symbols: int, length: int) -> Program:
    """Return forward and backward of the loss of ``batch`` utterances."""
    torch.manual_seed(0)
    with torch.device(device):
        scores = torch.randn(frames, batch, symbols).requires_grad_()
        return Program(Alphas(), (scores, torch.randint(1, symbols, (batch, length))))
