"""Models of timm with random weights: forward and backward, batch norm's statistics updated on the way."""

from __future__ import annotations

from typing import Any

import torch

from pytest_reinplace import Program


class Classifier(torch.nn.Module):
    """A model, and the loss of its images, mixed in place with the batch turned around."""

    def __init__(self, model: torch.nn.Module, share: float) -> None:
        super().__init__()
        self.model = model
        self.share = share

    def forward(self, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss of ``(batch, 3, side, side)``, of which ``(batch, classes)`` is wanted."""
        flipped = images.flip(0).mul_(1 - self.share)
        images.mul_(self.share).add_(flipped)
        return torch.nn.functional.cross_entropy(self.model(images), targets)


def training(
    device: str, *, name: str, options: dict[str, Any], batch: int, side: int, classes: int
) -> Program:
    """Return a step of the model that timm calls ``name``."""
    import timm

    torch.manual_seed(0)
    with torch.device(device):
        model = timm.create_model(name, pretrained=False, num_classes=classes, **options).train()
        images, targets = torch.randn(batch, 3, side, side), torch.rand(batch, classes).softmax(1)
    return Program(Classifier(model, 0.8), (images, targets))
