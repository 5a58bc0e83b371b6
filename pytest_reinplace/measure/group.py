"""Measuring in several processes at once: all call equally often, and a call ends when its last does."""

from __future__ import annotations

from collections.abc import Mapping

from ..base import launch

Times = Mapping[str, tuple[float, ...]]


def agreed(*numbers: int) -> tuple[int, ...]:
    """Return the first process's numbers: one that called more often than the others would wait for ever."""
    if not _is_shared():
        return numbers
    from torch.distributed import broadcast_object_list

    told = [numbers]
    broadcast_object_list(told, src=0)
    return told[0]


def slowest(times: Times) -> dict[str, tuple[float, ...]]:
    """Return for each side and round the longest time that a process took.

    Every process has the same times then, so that all of them measure once more or none does.
    """
    if not _is_shared():
        return dict(times)
    from torch.distributed import all_gather_object

    everywhere: list[Times] = [{}] * launch.processes()
    all_gather_object(everywhere, times)
    sides = [name for name in times if all(name in found for found in everywhere)]
    return {s: tuple(map(max, zip(*(f[s] for f in everywhere), strict=True))) for s in sides}


def _is_shared() -> bool:
    """Return whether the entry's program has made a group of all processes; others run one by one."""
    if launch.processes() == 1:
        return False
    import torch.distributed

    return torch.distributed.is_initialized()
