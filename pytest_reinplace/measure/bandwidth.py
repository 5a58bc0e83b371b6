"""How fast a device copies: the limit that moving bytes has."""

from __future__ import annotations

import functools
import statistics

from . import clock

_BYTES = {"cuda": 1 << 30, "cpu": 1 << 27}  # far beyond the caches of either
_ROUNDS = 11


@functools.cache
def of_copy(device: str) -> float:
    """Return how many bytes a second a large copy on ``device`` reads and writes, measured once a process."""
    import torch

    source = torch.empty(_BYTES[device], dtype=torch.uint8, device=device).zero_()
    target = torch.empty_like(source)
    times = [clock.seconds(lambda: target.copy_(source), 3, device) for _ in range(_ROUNDS)]
    return 2 * source.numel() / statistics.median(times)
