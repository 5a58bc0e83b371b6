"""Masks of shifted windows, and tokens of images that are masked and put back for reconstruction."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class ShiftedWindows(torch.nn.Module):
    """Attention inside shifted windows; which regions may see each other is written into an image."""

    def __init__(self, width: int, window: int, shift: int) -> None:
        super().__init__()
        self.window = window
        self.shift = shift
        self.qkv: torch.nn.Linear = torch.nn.Linear(width, 3 * width)

    def split(self, image: torch.Tensor) -> torch.Tensor:
        """Return ``(batch * windows, window * window, width)`` of ``(batch, side, side, width)``."""
        batch, side, _, width = image.shape
        w = self.window
        parts = image.view(batch, side // w, w, side // w, w, width).transpose(2, 3)
        return parts.reshape(-1, w * w, width)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, side, side, width)``."""
        batch, side, _, width = image.shape
        w, shift = self.window, self.shift
        regions = torch.zeros(1, side, side, 1, device=image.device)
        edges = (slice(0, -w), slice(-w, -shift), slice(-shift, None))
        number = 0
        for rows in edges:
            for columns in edges:
                regions[:, rows, columns, :] = number
                number += 1
        region = self.split(regions).squeeze(-1)
        apart = region.unsqueeze(1) - region.unsqueeze(2)
        mask = apart.masked_fill(apart != 0, -100.0).masked_fill_(apart == 0, 0.0)
        shifted = torch.roll(image, (-shift, -shift), (1, 2))
        query, key, value = self.qkv(self.split(shifted)).chunk(3, -1)
        scores = query @ key.transpose(1, 2) * width**-0.5
        scores.view(batch, -1, w * w, w * w).add_(mask)
        mixed = scores.softmax(-1) @ value
        output = torch.empty_like(shifted)
        parts = mixed.view(batch, side // w, side // w, w, w, width)
        for row in range(side // w):
            for column in range(side // w):
                place = slice(row * w, row * w + w), slice(column * w, column * w + w)
                output[:, place[0], place[1]] = parts[:, row, column]
        return torch.roll(output, (shift, shift), (1, 2))


class MaskedAutoencoder(torch.nn.Module):
    """A quarter of the patches is encoded; the rest are mask tokens among which they are put back."""

    def __init__(self, patch: int, hidden: int) -> None:
        super().__init__()
        self.encode: torch.nn.Linear = torch.nn.Linear(patch, hidden)
        self.decode: torch.nn.Linear = torch.nn.Linear(hidden, patch)
        self.token: torch.nn.Parameter = torch.nn.Parameter(torch.randn(hidden) * 0.02)

    def forward(self, patches: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Return the loss of the hidden patches, ``(batch,)``, of ``(batch, count, patch)``."""
        batch, count, _ = patches.shape
        order = noise.argsort(1)
        visible = order[:, : count // 4]
        rows = torch.arange(batch, device=patches.device).unsqueeze(1)
        encoded = torch.nn.functional.gelu(self.encode(patches[rows, visible]))
        mask = torch.ones(batch, count, device=patches.device)
        mask.scatter_(1, visible, 0.0)
        tokens = self.token.repeat(batch, count, 1)
        tokens[rows, visible] = encoded
        error = (self.decode(tokens) - patches).square().mean(2)
        loss: torch.Tensor = (error * mask).sum(1) / mask.sum(1)
        return loss


def shifted(device: str, *, batch: int, side: int, width: int, window: int, shift: int) -> Program:
    """Return attention inside shifted windows."""
    torch.manual_seed(0)
    with torch.device(device):
        model = ShiftedWindows(width, window, shift).eval()
        return Program(model, (torch.randn(batch, side, side, width),))


def masked(device: str, *, batch: int, count: int, patch: int, hidden: int) -> Program:
    """Return forward and backward of the reconstruction of hidden patches."""
    torch.manual_seed(0)
    with torch.device(device):
        patches, noise = torch.randn(batch, count, patch), torch.rand(batch, count)
        return Program(MaskedAutoencoder(patch, hidden), (patches, noise))
