"""What corpus entries hold and how long they take by each policy of our pass, beside Inductor's own.

``python -m benchmarks.policies gram-schmidt prefix-sum-tree --device cuda`` compiles each entry by
``policy="memory"``, by ``"peak"`` and by Inductor alone, and calls them in random order. A line for each: the
most bytes that a call holds, its median time, and by how much ``"peak"`` is slower than the two others.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import random
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from pytest_reinplace import corpus
from pytest_reinplace.call import call, peak
from pytest_reinplace.call.state import State
from pytest_reinplace.entry.entry import load
from pytest_reinplace.entry.run import called, ready
from pytest_reinplace.passes import inductor_options

CORPUS = Path(corpus.__file__).parent
SIDES = {"stock": {}, "memory": inductor_options(), "peak": inductor_options(policy="peak")}


def main() -> None:
    """Measure the entries and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("entries", nargs="+", help="names of corpus entries")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=12)
    given = parser.parse_args()
    for name in given.entries:
        held, took = _measured(name, given.device, given.rounds)
        sides = ", ".join(f"{side} {held[side]} B in {took[side] * 1000:.3f} ms" for side in SIDES)
        slower = ", ".join(f"{took['peak'] / took[side]:.2f} of {side}'s" for side in ("memory", "stock"))
        print(f"{name}: {sides}; time by peak {slower}", flush=True)


def _measured(name: str, device: str, rounds: int) -> tuple[dict[str, int], dict[str, float]]:
    """Return the peak in bytes and the median seconds of an entry, by side."""
    entry = load(CORPUS / f"{name}.reinplace.yaml")
    preset = entry.on(device)
    if preset is None:
        raise SystemExit(f"{name} is not for {device}")
    held, runs = dict[str, int](), dict[str, tuple[Any, State]]()
    with contextlib.ExitStack() as stack:
        for side, options in SIDES.items():
            torch.compiler.reset()
            program = stack.enter_context(ready(entry, preset, CORPUS))
            fast: Any = torch.compile(program.fn, dynamic=entry.dynamic or None, options=options)
            state = State(call.tensors(program.fn, program.args, program.kwargs))
            run = functools.partial(called, fast, program, entry)
            run()  # compiles
            state.restore()
            held[side] = peak.measured(run, device)[1]
            runs[side] = run, state
        times: dict[str, list[float]] = {side: [] for side in SIDES}
        for side in random.sample([*SIDES] * rounds, len(SIDES) * rounds):
            times[side].append(_seconds(*runs[side], device))
    return held, {side: statistics.median(took) for side, took in times.items()}


def _seconds(run: Any, state: State, device: str) -> float:
    """Return how long a call takes, after one that is not counted."""
    for _ in range(2):
        state.restore()
        _wait(device)
        start = time.perf_counter()
        run()
        _wait(device)
    return time.perf_counter() - start


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
