"""Measurements as they would come, for what judges and writes them."""

from __future__ import annotations

import random

from pytest_reinplace.record.figures import Measurement, Side


def side(name: str, runtime: float = 1e-3, *, seed: int = 0, **figures: int) -> Side:
    """Return a side whose rounds scatter by a hundredth."""
    draw = random.Random(f"{name}{seed}")
    times = tuple(runtime * draw.gauss(1, 0.01) for _ in range(31))
    given = {"clones": 2, "clone_bytes": 2048, "peak_bytes": 100_000, **figures}
    if name == "eager":
        return Side(name, given["peak_bytes"], times)
    return Side(name, times=times, compile_seconds=1.0, moved_bytes=4096, **given)  # type: ignore[arg-type]


def measurement(
    runtime: float = 1e-3, *, entry: str = "attention", name: str = "exact", seed: int = 0, **figures: int
) -> Measurement:
    """Return a measurement in which Inductor's side takes a millisecond."""
    sides = [side("eager", seed=seed), side("inductor", seed=seed), side(name, runtime, seed=seed, **figures)]
    return Measurement(
        entry=entry,
        folder="corpus/baselines",
        source=f"corpus/{entry}.reinplace.yaml",
        device="cpu-x86_64",
        pass_name=name,
        sides={one.name: one for one in sides},
        calls=3,
        copy_bandwidth=1e10,
    )
