"""Overlapping frames: spectra are cleaned as sound streams, frames added up into an output that moves on."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Denoiser(torch.nn.Module):
    """The last samples heard, the sound that is still to be finished, and what noise looks like."""

    window: torch.Tensor
    heard: torch.Tensor
    pending: torch.Tensor
    noise: torch.Tensor

    def __init__(self, batch: int, frame: int, hop: int) -> None:
        super().__init__()
        self.frame = frame
        self.hop = hop
        self.register_buffer("window", torch.hann_window(frame).sqrt())
        self.register_buffer("heard", torch.zeros(batch, frame))
        self.register_buffer("pending", torch.zeros(batch, frame))
        self.register_buffer("noise", torch.full((batch, frame // 2 + 1), 0.1))

    def forward(self, chunk: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, samples)`` for as many samples, a multiple of the hop."""
        output = torch.empty_like(chunk)
        hop = self.hop
        for start in range(0, chunk.shape[1], hop):
            self.heard[:, :-hop] = self.heard[:, hop:].clone()
            self.heard[:, -hop:] = chunk[:, start : start + hop]
            spectrum = torch.fft.rfft(self.heard * self.window)
            power = spectrum.abs()
            quiet = power < 2 * self.noise
            self.noise.copy_(torch.where(quiet, 0.9 * self.noise + 0.1 * power, self.noise))
            gain = (1 - self.noise / power.clamp(min=1e-4)).clamp_(min=0.1)
            frame = torch.fft.irfft(spectrum * gain, self.frame) * self.window
            self.pending += frame
            output[:, start : start + hop] = self.pending[:, :hop]
            self.pending[:, :-hop] = self.pending[:, hop:].clone()
            self.pending[:, -hop:] = 0
        return output


class Vocoder(torch.nn.Module):
    """Frames of a vocoder, laid over each other in one signal that is divided by the windows' sum."""

    window: torch.Tensor

    def __init__(self, frame: int) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(frame))

    def forward(self, frames: torch.Tensor, hop: int) -> torch.Tensor:
        """Return ``(batch, samples)`` for ``(batch, count, frame)``."""
        batch, count, frame = frames.shape
        signal = frames.new_zeros(batch, frame + hop * (count - 1))
        weight = torch.zeros_like(signal[0])
        for number in range(count):
            place = slice(number * hop, number * hop + frame)
            signal[:, place] += frames[:, number] * self.window
            weight[place] += self.window.square()
        signal /= weight.clamp_(min=1e-3)
        return signal


def denoise(device: str, *, batch: int, frame: int, hop: int, hops: int) -> Program:
    """Return a chunk of ``hops`` hops, cleaned."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Denoiser(batch, frame, hop), (torch.randn(batch, hop * hops),))


def overlap(device: str, *, batch: int, frame: int, hop: int, count: int) -> Program:
    """Return the signal that ``count`` frames make."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Vocoder(frame), (torch.randn(batch, count, frame), hop))
