"""Timing calls: by the device's own events on CUDA, by the processor's clock elsewhere."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

Call = Callable[[], object]

# A round is long against the resolution of its clock and short enough for tens of them; a program may
# write on behind its last call, so that its calls in a row are few.
_ROUND_SECONDS, _MOST_CALLS = 5e-3, 20


def seconds(call: Call, calls: int, device: str) -> float:
    """Return how long one of ``calls`` calls in a row takes on a device, in seconds."""
    return (_on_cuda if device == "cuda" else _on_cpu)(call, calls)


def _on_cpu(call: Call, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def _on_cuda(call: Call, calls: int) -> float:
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / calls


def calls_for(one: float) -> int:
    """Return how many calls in a row a round times, for calls that take so many seconds."""
    return min(max(math.ceil(_ROUND_SECONDS / max(one, 1e-9)), 1), _MOST_CALLS)


def interleaved(
    sides: Mapping[str, Call],
    device: str,
    calls: int,
    rounds: int,
    restore: Callable[[], None],
    at: Callable[[int], None],
) -> dict[str, tuple[float, ...]]:
    """Time all sides in each of the rounds; return seconds a call, by side and round.

    Which side comes first changes from round to round, and so does which one comes before another: clocks
    that warm up or slow down meet all of them alike. Python's collector rests meanwhile.

    Args:
        sides: what is timed.
        device: ``"cpu"`` or ``"cuda"``.
        calls: how many calls in a row are timed at once.
        rounds: how often.
        restore: puts the state back before each timing.
        at: is told the number of each round.
    """
    found: dict[str, list[float]] = {name: [] for name in sides}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number, order in enumerate(_orders(tuple(sides), rounds)):
            at(number + 1)
            for name in order:
                restore()
                found[name].append(seconds(sides[name], calls, device))
    finally:
        if collecting:
            gc.enable()
    return {name: tuple(times) for name, times in found.items()}


def _orders(names: Sequence[str], rounds: int) -> Iterator[Sequence[str]]:
    for number in range(rounds):
        first = (number // 2) % len(names)
        turned = [*names[first:], *names[:first]]
        yield turned if number % 2 == 0 else turned[::-1]
