"""Boxes that overlap: scores lowered in place, and suppression by a matrix of overlaps."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


def overlaps(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return how much boxes, ``(..., n, 4)`` and ``(..., m, 4)``, overlap: ``(..., n, m)``."""
    corner = torch.maximum(first[..., :, None, :2], second[..., None, :, :2])
    other = torch.minimum(first[..., :, None, 2:], second[..., None, :, 2:])
    shared = (other - corner).clamp_(min=0).prod(-1)
    areas = [(boxes[..., 2:] - boxes[..., :2]).prod(-1) for boxes in (first, second)]
    return shared / (areas[0][..., :, None] + areas[1][..., None, :] - shared)


class Soft(torch.nn.Module):
    """Takes the best box, lowers the scores of those it overlaps, and goes on, for all images at once."""

    def __init__(self, kept: int, sigma: float) -> None:
        super().__init__()
        self.kept = kept
        self.sigma = sigma

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return which boxes are kept and their scores, ``(images, kept)``; lowers ``(images, boxes)``."""
        images = len(boxes)
        rows = torch.arange(images, device=boxes.device)
        chosen = torch.full((images, self.kept), -1, device=boxes.device)
        values = scores.new_zeros(images, self.kept)
        for number in range(self.kept):
            best = scores.argmax(1)
            chosen[:, number] = best
            values[:, number] = scores[rows, best]
            overlap = overlaps(boxes[rows, best].unsqueeze(1), boxes).squeeze(1)
            scores *= torch.exp(-overlap.square() / self.sigma)
            scores[rows, best] = -1
        return chosen, values


class Greedy(torch.nn.Module):
    """Keeps boxes in the order of their scores unless one that is kept overlaps them, a row at a time."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return which of ``(images, boxes, 4)`` are kept, ``(images, boxes)``."""
        order = scores.argsort(1, descending=True)
        ordered = boxes.gather(1, order.unsqueeze(2).expand_as(boxes))
        suppresses = overlaps(ordered, ordered).triu_(1) > self.threshold
        keep = torch.ones_like(order, dtype=torch.bool)
        for number in range(order.shape[1]):
            keep[:, number + 1 :] &= ~(suppresses[:, number, number + 1 :] & keep[:, number : number + 1])
        return torch.zeros_like(keep).scatter_(1, order, keep)


def _random_boxes(*shape: int) -> torch.Tensor:
    corner = torch.rand(*shape, 2)
    return torch.cat([corner, corner + torch.rand(*shape, 2) * 0.4 + 0.05], -1)


def soft(device: str, *, images: int, boxes: int, kept: int) -> Program:
    """Return the ``kept`` best boxes of each image."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Soft(kept, 0.5), (_random_boxes(images, boxes), torch.rand(images, boxes)))


def greedy(device: str, *, images: int, boxes: int) -> Program:
    """Return which boxes of each image are kept."""
    torch.manual_seed(0)
    with torch.device(device):
        return Program(Greedy(0.5), (_random_boxes(images, boxes), torch.rand(images, boxes)))
