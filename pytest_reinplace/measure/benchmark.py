"""pytest-benchmark: its options say how long to measure, its tables and files show what was."""

from __future__ import annotations

from typing import Any

import pytest

from ..record.figures import Measurement, Side
from .sides import Effort

FIXTURE = "benchmark"
_REPLAY = pytest.StashKey["Replay"]()


class Replay:
    """A timer for pytest-benchmark that tells again what was measured before.

    Its own timing cannot interleave the sides of an entry; so each of its rounds asks this twice, and the
    difference is one round of ours.
    """

    __name__ = "interleaved"

    def __init__(self) -> None:
        self.times: list[float] = []
        self._next = 0
        self._now = 0.0
        self._is_running = False

    def __call__(self) -> float:
        """Return the time, in seconds."""
        if self._is_running:
            self._now += self.times[self._next]
            self._next += 1
        self._is_running = not self._is_running
        return self._now


def replaying(item: pytest.Item) -> None:
    """Let pytest-benchmark show of an item what :func:`report` hands on."""
    replay = item.stash[_REPLAY] = Replay()
    item.add_marker(pytest.mark.benchmark(timer=replay, group="reinplace"))


def is_active(config: pytest.Config) -> bool:
    """Return whether pytest-benchmark is there."""
    return config.pluginmanager.hasplugin("benchmark")


def effort(config: pytest.Config) -> Effort:
    """Return how long to measure, as pytest-benchmark's options say where they differ from its defaults."""
    if not is_active(config):
        return Effort()
    if config.getoption("benchmark_disable", default=False):
        return Effort(seconds=0)
    asked: Any = config.getoption("benchmark_max_time", default=None)
    rounds: Any = config.getoption("benchmark_min_rounds", default=None)
    usual = Effort()
    return Effort(
        usual.seconds if asked in (None, _MAX_TIME) else float(asked),
        usual.rounds if rounds in (None, _MIN_ROUNDS) else int(rounds),
    )


# What pytest-benchmark has where nothing is given.
_MAX_TIME, _MIN_ROUNDS = 1.0, 5


def report(item: pytest.Item, found: Measurement) -> None:
    """Hand the times of the pass under test to pytest-benchmark, all other figures as ``extra_info``."""
    fixture = _fixture(item)
    if fixture is None:
        return
    fixture.extra_info.update(
        {
            side.name: {
                **side.exact,
                **_of_programs(side),
                "runtime": side.runtime,
                "compile_seconds": side.compile_seconds,
            }
            for side in found.sides.values()
        }
    )
    replay = item.stash[_REPLAY]
    replay.times = list(found.tested.times)
    if replay.times:
        fixture.pedantic(lambda: None, rounds=len(replay.times), iterations=1)


def _of_programs(side: Side) -> dict[str, int]:
    known = {"static_peak": side.static_peak, "lower_bound": side.lower_bound}
    return {name: nbytes for name, nbytes in known.items() if nbytes is not None}


def withdraw(item: pytest.Item) -> None:
    """Tell pytest-benchmark that nothing was measured; it would warn of a benchmark that forgot to run."""
    fixture = _fixture(item)
    if fixture is not None and not item.stash[_REPLAY].times:
        fixture.disabled = True
        fixture.pedantic(lambda: None)


def _fixture(item: pytest.Item) -> Any:
    return getattr(item, "funcargs", {}).get(FIXTURE) if _REPLAY in item.stash else None
