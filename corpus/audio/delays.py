"""A reverberator: delay lines as rings of different lengths, read and written at positions that move on."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Reverb(torch.nn.Module):
    """Comb filters in parallel and all-pass filters behind them, block by block."""

    diffuse: torch.Tensor
    lines: torch.Tensor
    lengths: torch.Tensor
    low: torch.Tensor
    position: torch.Tensor

    def __init__(self, batch: int, lengths: list[int], spread: int) -> None:
        super().__init__()
        self.register_buffer("lengths", torch.tensor(lengths))
        self.register_buffer("lines", torch.zeros(batch, len(lengths), max(lengths)))
        self.register_buffer("low", torch.zeros(batch, len(lengths)))
        self.register_buffer("diffuse", torch.zeros(batch, spread))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))

    def forward(self, block: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, samples)``, no longer than the shortest line."""
        batch, samples = block.shape
        time = self.position + torch.arange(samples, device=block.device)
        place = time % self.lengths.unsqueeze(1)
        where = place.expand(batch, -1, -1)
        delayed = self.lines.gather(2, where)
        # Each line's high tones fade faster: a low-pass by the mean of neighbours, carried over blocks.
        smooth = torch.empty_like(delayed)
        smooth[:, :, 0] = 0.6 * delayed[:, :, 0] + 0.4 * self.low
        smooth[:, :, 1:] = 0.6 * delayed[:, :, 1:] + 0.4 * delayed[:, :, :-1]
        self.low.copy_(delayed[:, :, -1])
        self.lines.scatter_(2, where, block.unsqueeze(1) + 0.8 * smooth)
        wet = delayed.mean(1)
        ring = time % self.diffuse.shape[1]
        before = self.diffuse[:, ring]
        out = before - 0.5 * wet
        self.diffuse[:, ring] = wet + 0.5 * out
        self.position += samples
        return out


def reverberate(device: str, *, batch: int, lengths: list[int], spread: int, samples: int) -> Program:
    """Return one block of sound with its reverberation."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Reverb(batch, lengths, spread), (torch.randn(batch, samples),))
