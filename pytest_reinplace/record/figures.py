"""What measuring an entry gave: its sides, each with its clones, its peak and its times."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping
from typing import Any

EAGER = "eager"
STOCK = "inductor"
_COUNTS = ("clones", "clone_bytes", "moved_bytes", "least_bytes", "static_peak", "lower_bound")


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """One way to run a program.

    Args:
        name: ``"eager"``, or the pass under which it was compiled.
        peak_bytes: the most bytes that were live during a call, above the level before it.
        times: seconds a call, one figure for each round; rounds of all sides are interleaved.
        clones: how many candidates were cloned; ``None`` for eager.
        clone_bytes: the bytes of these; ``None`` for eager.
        compile_seconds: how long the first call took; ``None`` for eager.
        moved_bytes: what Inductor counts that its kernels read and write; ``None`` where it compiled nothing.
        least_bytes: what its graphs have to move at least, inputs read once and results written once.
        static_peak: the most that one of its programs holds by itself; ``None`` where that is not known.
        lower_bound: what its programs must hold at some time, in any order of their lines; ``None`` likewise.
    """

    name: str
    peak_bytes: int
    times: tuple[float, ...]
    clones: int | None = None
    clone_bytes: int | None = None
    compile_seconds: float | None = None
    moved_bytes: int | None = None
    least_bytes: int | None = None
    static_peak: int | None = None
    lower_bound: int | None = None

    @property
    def runtime(self) -> float | None:
        """Seconds a call, the median of the rounds; ``None`` where none was timed."""
        return statistics.median(self.times) if self.times else None

    @property
    def exact(self) -> dict[str, int]:
        """The figures that are the same at every run, by metric."""
        found = {"clones": self.clones, "clone_bytes": self.clone_bytes, "peak_bytes": self.peak_bytes}
        return {metric: figure for metric, figure in found.items() if figure is not None}

    @property
    def over_bound(self) -> float | None:
        """The peak by the lower bound; ``None`` where that is 0 or not known."""
        return self.peak_bytes / self.lower_bound if self.lower_bound else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with ``runtime``."""
        return {**dataclasses.asdict(self), "times": list(self.times), "runtime": self.runtime}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Side:
        """Return what :meth:`to_dict` gave; raises ``KeyError``, ``TypeError`` or ``ValueError``."""
        counts = {name: data.get(name) for name in _COUNTS}
        seconds = data.get("compile_seconds")
        return cls(
            name=str(data["name"]),
            peak_bytes=int(data["peak_bytes"]),
            times=tuple(map(float, data["times"])),
            compile_seconds=None if seconds is None else float(seconds),
            **{name: None if count is None else int(count) for name, count in counts.items()},
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Measurement:
    """All sides of one entry, measured in one run, interleaved.

    Args:
        entry: its name.
        folder: the folder of its baselines, from the root of the session.
        source: its file, from there, too.
        device: the device's slug, as files of baselines are called.
        pass_name: the pass under test; one of the sides.
        sides: the sides by name.
        calls: how many calls a round times at once.
        copy_bandwidth: bytes a second that a plain copy on the device reads and writes.
    """

    entry: str
    folder: str
    source: str
    device: str
    pass_name: str
    sides: Mapping[str, Side]
    calls: int = 1
    copy_bandwidth: float | None = None

    @property
    def tested(self) -> Side:
        """The side of the pass under test."""
        return self.sides[self.pass_name]

    def bandwidth_fraction(self, name: str) -> float | None:
        """Return which fraction of a copy's bandwidth a side reaches with the bytes that its kernels move."""
        side = self.sides[name]
        if not (side.moved_bytes and side.runtime and self.copy_bandwidth):
            return None
        return side.moved_bytes / side.runtime / self.copy_bandwidth

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        whole = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**whole, "sides": {name: side.to_dict() for name, side in self.sides.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measurement:
        """Return what :meth:`to_dict` gave; raises as :meth:`Side.from_dict` does."""
        bandwidth = data.get("copy_bandwidth")
        found = cls(
            **{name: str(data[name]) for name in ("entry", "folder", "source", "device", "pass_name")},
            sides={str(name): Side.from_dict(side) for name, side in data["sides"].items()},
            calls=int(data["calls"]),
            copy_bandwidth=None if bandwidth is None else float(bandwidth),
        )
        found.sides[found.pass_name], found.sides[EAGER]
        return found
