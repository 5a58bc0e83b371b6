"""Batches of images augmented on the device: boxes erased, mixed and pasted, colors changed, all in place."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Boxes(torch.nn.Module):
    """Boxes at places that Python knows: erased with noise in some images, swapped between others."""

    def __init__(self, erased: list[list[int]], swapped: list[int]) -> None:
        super().__init__()
        self.erased = erased
        self.swapped = swapped

    def forward(self, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return ``targets``, ``(batch, classes)``, mixed as ``images``, ``(batch, 3, side, side)``, are."""
        for number, (top, left, height, width) in enumerate(self.erased):
            box = images[number, :, top : top + height, left : left + width]
            box.copy_(torch.linspace(-1, 1, box.numel(), device=box.device).view_as(box))
        top, left, height, width = self.swapped
        rows, columns = slice(top, top + height), slice(left, left + width)
        images[:, :, rows, columns] = images.flip(0)[:, :, rows, columns]
        share = 1 - height * width / (images.shape[2] * images.shape[3])
        other = targets.flip(0).mul_(1 - share)
        targets.mul_(share).add_(other)
        return targets


class Photometric(torch.nn.Module):
    """Brightness, contrast, saturation and flips of some images, by masks; then normalized."""

    gray: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("gray", torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1))

    def forward(self, images: torch.Tensor, strength: torch.Tensor, flipped: torch.Tensor) -> torch.Tensor:
        """Return ``images``, ``(batch, 3, side, side)`` from 0 to 1; strengths are ``(3, batch)``."""
        brightness, contrast, saturation = strength[:, :, None, None, None]
        images.mul_(brightness).clamp_(0, 1)
        mean = (images * self.gray).sum(1, keepdim=True).mean((2, 3), keepdim=True)
        images.sub_(mean).mul_(contrast).add_(mean).clamp_(0, 1)
        gray = (images * self.gray).sum(1, keepdim=True)
        images.lerp_(gray, 1 - saturation).clamp_(0, 1)
        images[flipped] = images[flipped].flip(3)
        images[:, 0].sub_(0.485).div_(0.229)
        images[:, 1].sub_(0.456).div_(0.224)
        images[:, 2].sub_(0.406).div_(0.225)
        return images


class Mosaic(torch.nn.Module):
    """Four images pasted around a centre of one canvas, and their boxes moved and clipped with them."""

    def __init__(self, centre: list[int]) -> None:
        super().__init__()
        self.centre = centre

    def forward(self, images: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        """Return ``(batch, 3, 2 * side, 2 * side)`` for ``(batch, 4, 3, side, side)``.

        Args:
            images: as said.
            boxes: ``(batch, 4, count, 4)``, left, top, right, bottom; changed.
        """
        batch, _, _, side, _ = images.shape
        canvas = images.new_full((batch, 3, 2 * side, 2 * side), 114 / 255)
        down, right = self.centre
        for number, (row, column) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
            top, left = (down if row else down - side), (right if column else right - side)
            y0, y1 = max(top, 0), min(top + side, 2 * side)
            x0, x1 = max(left, 0), min(left + side, 2 * side)
            canvas[:, :, y0:y1, x0:x1] = images[:, number, :, y0 - top : y1 - top, x0 - left : x1 - left]
            boxes[:, number, :, 0::2] += left
            boxes[:, number, :, 1::2] += top
        boxes.clamp_(0, 2 * side)
        return canvas


def boxes(
    device: str, *, batch: int, side: int, classes: int, erased: list[list[int]], swapped: list[int]
) -> Program:
    """Return mixed targets of images with erased and swapped boxes."""
    torch.manual_seed(0)
    with torch.device(device):
        images = torch.randn(batch, 3, side, side)
        return Program(Boxes(erased, swapped), (images, torch.rand(batch, classes)))


def photometric(device: str, *, batch: int, side: int) -> Program:
    """Return images of other colors, some of them flipped."""
    torch.manual_seed(0)
    with torch.device(device):
        strength = torch.rand(3, batch) * 0.4 + 0.8
        images = torch.rand(batch, 3, side, side)
        return Program(Photometric(), (images, strength, torch.randperm(batch)[: batch // 2]))


def mosaic(device: str, *, batch: int, side: int, count: int, centre: list[int]) -> Program:
    """Return mosaics of four images each."""
    torch.manual_seed(0)
    with torch.device(device):
        images = torch.rand(batch, 4, 3, side, side)
        return Program(Mosaic(centre), (images, torch.rand(batch, 4, count, 4) * side))
