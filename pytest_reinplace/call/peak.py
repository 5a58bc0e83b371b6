"""Peak memory of a call: by the profiler's allocation events on the CPU, by the allocator on CUDA."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from . import _torch


def measured(call: Callable[[], Any], device: str = "cpu") -> tuple[Any, int]:
    """Call and return ``(result, peak)``: the most bytes that were live above the level at the start.

    On the CPU the events of all allocations are added up in the order of time, so the number is the same
    at every run; memory that kernels allocate by themselves (oneDNN scratch) is not seen. On CUDA it is
    what tensors requested of the caching allocator, without its rounding.

    Args:
        call: what is measured; compile before, or the compilation is measured as well.
        device: ``"cpu"`` or ``"cuda"``.
    """
    return _on_cuda(call) if device == "cuda" else _on_cpu(call)


def _on_cpu(call: Callable[[], Any]) -> tuple[Any, int]:
    result, profile = profiled(call)
    return result, highest(_torch.allocations(profile))


def profiled(call: Callable[[], Any]) -> tuple[Any, Any]:
    """Call and return the result, and torch's profile of all allocations and operators on the CPU."""
    from torch.profiler import ProfilerActivity, profile

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch 2.13 prints a line for each profile otherwise
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as found:
        result = call()
    return result, found


def highest(sizes: Any) -> int:
    """Return the highest running sum of allocations (positive) and releases (negative), at least 0."""
    level = peak = 0
    for size in sizes:
        level += size
        peak = max(peak, level)
    return peak


def _on_cuda(call: Callable[[], Any]) -> tuple[Any, int]:
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = torch.cuda.memory_stats()["requested_bytes.all.current"]
    result = call()
    torch.cuda.synchronize()
    return result, int(torch.cuda.memory_stats()["requested_bytes.all.peak"]) - start
