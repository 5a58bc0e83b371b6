"""Speech features as a recognizer is given them: masked in training, normalized as they stream in."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class SpecAugment(torch.nn.Module):
    """Bands of frequencies and stretches of time set to the mean, with a mask for each or by slices."""

    def __init__(self, bands: int, by_slices: bool) -> None:
        super().__init__()
        self.bands = bands
        self.by_slices = by_slices

    def forward(self, features: torch.Tensor, starts: torch.Tensor, widths: torch.Tensor) -> torch.Tensor:
        """Return ``features``, ``(batch, frames, mels)``, masked in place.

        Args:
            features: as said.
            starts: of bands of mels, then of frames, ``(2, bands, batch, 1)``.
            widths: as ``starts``.
        """
        mean = features.mean((1, 2), keepdim=True)
        features -= mean
        for band in range(self.bands):
            for axis, size in ((0, features.shape[2]), (1, features.shape[1])):
                place = torch.arange(size, device=features.device)
                start, width = starts[axis, band], widths[axis, band]
                mask = (place >= start) & (place < start + width)
                features.masked_fill_(mask.unsqueeze(2 if axis else 1), 0.0)
        if self.by_slices:
            features[:, :2] = 0
            features[:, :, -1:] = 0
        return features


class Online(torch.nn.Module):
    """Cepstral means over a window that slides, and frames stacked with those before them."""

    history: torch.Tensor
    total: torch.Tensor
    position: torch.Tensor

    def __init__(self, batch: int, window: int, mels: int) -> None:
        super().__init__()
        self.window = window
        self.register_buffer("history", torch.zeros(batch, window, mels))
        self.register_buffer("total", torch.zeros(batch, mels))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, frames, 2 * mels)`` for ``(batch, frames, mels)``."""
        batch, count, mels = frames.shape
        output = frames.new_zeros(batch, count, 2, mels)
        for t in range(count):
            place = self.position % self.window
            self.total -= self.history[:, place].squeeze(1)
            self.total += frames[:, t]
            self.history[:, place] = frames[:, t : t + 1]
            self.position += 1
            size = self.position.clamp(max=self.window)
            output[:, t, 0] = frames[:, t] - self.total / size
            if t:
                output[:, t, 1] = output[:, t - 1, 0]
        return output.flatten(2)


def augment(device: str, *, batch: int, frames: int, mels: int, bands: int, by_slices: bool) -> Program:
    """Return masked features."""
    torch.manual_seed(0)
    with torch.device(device):
        starts = torch.randint(0, mels // 2, (2, bands, batch, 1))
        widths = torch.randint(1, mels // 2, (2, bands, batch, 1))
        return Program(SpecAugment(bands, by_slices), (torch.randn(batch, frames, mels), starts, widths))


def online(device: str, *, batch: int, window: int, mels: int, frames: int) -> Program:
    """Return ``frames`` normalized and stacked frames of each stream."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Online(batch, window, mels), (torch.randn(batch, frames, mels),))
