"""Fake tensors that rewrites make by the thousand: of one mode, by sizes and strides alone."""

from __future__ import annotations

from typing import Any

import torch

from . import _torch

Layout = tuple[tuple[int, ...], tuple[int, ...], int]  # sizes, strides, offset, in elements


class Fakes:
    """Makes the fake tensors of one mode.

    Args:
        fake_mode: the mode.
    """

    def __init__(self, fake_mode: Any) -> None:
        self._fake_mode = fake_mode
        self._patterns: dict[torch.device, torch.Tensor] = {}  # in no graph, so that nobody changes them

    def on_storage(self, base: torch.Tensor, layout: Layout) -> torch.Tensor:
        """Return one of a given layout on the storage of another one, whose dtype it has."""
        device = base.device
        pattern = self._patterns.get(device)
        if pattern is None:
            meta = _torch.meta_on_storage(base, layout)
            self._patterns[device] = pattern = _torch.faked(self._fake_mode, meta, device)
        found: torch.Tensor = _torch.faked_as(pattern, _torch.meta_on_storage(base, layout))
        return found

    def like(self, base: torch.Tensor) -> torch.Tensor:
        """Return one of the same sizes and strides as another one on a storage of its own."""
        found: torch.Tensor = _torch.faked(self._fake_mode, _torch.meta_like(base), base.device)
        return found
