"""How long the first call of corpus entries takes with our options, beside Inductor's own.

``python -m benchmarks.compile_seconds llama-decode muon-step --device cuda --jobs 8``; without names all
entries of the device. Each entry and side has processes of its own, with empty caches, in random order; a
small function is compiled in each before, so that nobody pays for imports. A line for each entry, and the
geometric mean of the ratios.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

SIDES = "stock", "ours"
_LONGEST = 300.0  # seconds that a process may take


def main() -> None:
    """Measure the entries and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("entries", nargs="*", help="names of corpus entries (all)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is compiled by each side")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=36000, help="begin nothing after so long")
    parser.add_argument("--one", choices=SIDES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(_first_call(given.entries[0], given.device, given.one))
        return
    names = given.entries or _names(given.device)
    until = time.monotonic() + given.seconds
    turns = random.sample([*names] * given.rounds, len(names) * given.rounds)
    runs = [(name, side) for name in turns for side in random.sample(SIDES, len(SIDES))]
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        taken = pool.map(lambda run: _apart(run[0], run[1], given.device, until), runs)
        for (name, side), took in zip(runs, taken, strict=True):
            if took is not None:
                found[name][side].append(took)
    _print(found, len(names))


def _print(found: dict[str, dict[str, list[float]]], count: int) -> None:
    ratios = list[float]()
    for name, sides in sorted(found.items()):
        if set(sides) == set(SIDES):
            stock, ours = (statistics.median(sides[side]) for side in SIDES)
            ratios.append(ours / stock)
            print(f"{name}: {ours:.2f} s, stock {stock:.2f} s: {ratios[-1]:.2f}")
    if ratios:
        mean = statistics.geometric_mean(ratios)
        print(f"{len(ratios)} of {count} entries by both sides: geometric mean {mean:.3f}")


def _names(device: str) -> list[str]:
    """Return the names of all entries that are for a device."""
    from pytest_reinplace import corpus
    from pytest_reinplace.entry.entry import load

    paths = sorted(Path(corpus.__file__).parent.glob("*.reinplace.yaml"))
    return [path.name.partition(".")[0] for path in paths if load(path).on(device)]


def _apart(name: str, side: str, device: str, until: float) -> float | None:
    """Return the seconds of a first call in a process of its own; ``None`` where there is none to be had."""
    if time.monotonic() > until:
        return None
    with tempfile.TemporaryDirectory() as cache:
        caches = {"TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": f"{cache}/triton"}
        # By its path: a process that was not begun in the checkout cannot import `benchmarks`.
        command = [sys.executable, "-P", "-W", "ignore", __file__, name]
        command += ["--device", device, "--one", side]
        try:
            done = subprocess.run(
                command, env={**os.environ, **caches}, capture_output=True, text=True, timeout=_LONGEST
            )
        except subprocess.TimeoutExpired:
            print(f"{name}, {side}: more than {_LONGEST:.0f} s", file=sys.stderr)
            return None
    if done.returncode:
        print(f"{name}, {side}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return float(done.stdout.split()[-1])


def _first_call(name: str, device: str, side: str) -> float:
    """Return the seconds of the first call of an entry, which compiles it."""
    import torch

    from pytest_reinplace import corpus
    from pytest_reinplace.entry.entry import load
    from pytest_reinplace.entry.run import called, ready
    from pytest_reinplace.passes import inductor_options

    folder = Path(corpus.__file__).parent
    entry = load(folder / f"{name}.reinplace.yaml")
    preset = entry.on(device)
    if preset is None:
        raise SystemExit(f"{name} is not for {device}")
    options: dict[str, Any] = inductor_options() if side == "ours" else {}
    torch.compile(lambda x: x.sin() + 1, options=options)(torch.ones(8, device=device))
    with ready(entry, preset, folder) as program:
        fast: Any = torch.compile(program.fn, dynamic=entry.dynamic or None, options=options)
        start = time.perf_counter()
        called(fast, program, entry)
        if device != "cpu":
            torch.cuda.synchronize()
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
