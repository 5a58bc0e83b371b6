"""The gate: planted regressions turn it red, by the right line; what has not changed does not."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_reinplace.compare.limit import exact, limit
from pytest_reinplace.measure import gate
from pytest_reinplace.measure.baseline import figures_of
from pytest_reinplace.record.figures import Measurement

from .measurements import measurement

FIRST = measurement()
RECORDED = {name: figures_of(side, FIRST.sides["inductor"]) for name, side in FIRST.sides.items()}
LIMITS = (*exact(), limit("runtime:5%"))


def judged(found: Measurement, again: Measurement | None = None, limits=LIMITS) -> gate.Ruling:  # type: ignore[no-untyped-def]
    return gate.against_baseline(found, RECORDED, limits, lambda: again or found)


@pytest.mark.parametrize("seed", range(20))
def test_an_unchanged_tree_gives_no_alarm(seed: int) -> None:
    assert judged(measurement(seed=seed + 1)) == gate.Ruling()


def test_one_more_clone_is_over_the_limit() -> None:
    found = judged(measurement(clones=3, clone_bytes=3072))
    assert found.excesses == (
        "clones 2 → 3 (recorded), +1, +50.0 %; allowed is clones:0",
        "clone bytes 2.0 KiB → 3.0 KiB (recorded), +1024 B, +50.0 %; allowed is clone_bytes:0",
    )


def test_a_hundredth_more_peak_is_over_the_limit() -> None:
    found = judged(measurement(peak_bytes=101_000))
    assert found.excesses == (
        "peak bytes 97.7 KiB → 98.6 KiB (recorded), +1000 B, +1.0 %; allowed is peak_bytes:0",
    )


def test_what_a_limit_allows_is_within_it() -> None:
    assert not judged(measurement(peak_bytes=101_000), limits=(limit("peak_bytes:1%"),)).excesses
    assert judged(measurement(peak_bytes=101_001), limits=(limit("peak_bytes:1%"),)).excesses


def test_a_tenth_more_runtime_is_over_the_limit_and_compiled_anew_twice() -> None:
    times = []

    def again() -> Measurement:
        times.append(1)
        return measurement(1.1e-3, seed=2)

    found = gate.against_baseline(measurement(1.1e-3), RECORDED, LIMITS, again)
    assert len(times) == 2
    (line,) = found.excesses
    assert line.startswith(("runtime +8.", "runtime +9.", "runtime +10."))
    assert "times that of inductor, where at most 1.0" in line
    assert line.endswith("compiled and measured 3 times; allowed is runtime:5%")


def test_a_slow_measurement_that_is_not_confirmed_is_no_regression() -> None:
    found = judged(measurement(1.1e-3), again=measurement(1.0e-3, seed=3))
    assert not found.excesses
    (line,) = found.remarks
    assert line.startswith("runtime was 1.")
    assert ", where at most 1.0" in line
    assert "; compiled and measured anew it was " in line


def test_the_last_compilation_may_show_that_it_was_luck() -> None:
    anew = iter([measurement(1.12e-3, seed=2), measurement(1.0e-3, seed=3)])
    found = gate.against_baseline(measurement(1.1e-3), RECORDED, LIMITS, lambda: next(anew))
    assert not found.excesses
    (line,) = found.remarks
    assert line.count(", then 1.") == 1


def test_a_slower_machine_is_no_regression() -> None:
    found = measurement()
    slow = {
        name: dataclasses.replace(side, times=tuple(3 * t for t in side.times))
        for name, side in found.sides.items()
    }
    assert judged(dataclasses.replace(found, sides=slow)) == gate.Ruling()


def test_runtime_is_not_judged_where_nothing_was_interleaved() -> None:
    recorded = {"exact": {**RECORDED["exact"], "ratio_ppm": 0}}
    found = gate.against_baseline(measurement(2e-3), recorded, LIMITS, measurement)
    assert found.remarks == ("runtime was not judged: no runtime of exact beside inductor is recorded",)
    assert not found.excesses


def test_a_stale_baseline_is_told() -> None:
    found = judged(measurement(clones=1, clone_bytes=1024))
    assert not found.excesses
    assert found.remarks == (
        "better than recorded: clones 2 → 1, clone bytes 2.0 KiB → 1.0 KiB; record it with "
        "--reinplace-update",
    )


def test_a_pass_without_a_baseline_is_told() -> None:
    found = judged(measurement(name="mine:apply"))
    text = "no baseline for pass mine:apply: record it with --reinplace-update"
    assert (found.excesses, found.remarks) == ((), (text,))
    new = measurement(name="mine:apply")
    found = gate.against_baseline(new, RECORDED, LIMITS, lambda: new, is_limited=True)
    assert (found.excesses, found.remarks) == ((text,), ())


def test_sides_of_one_run_are_held_against_each_other() -> None:
    def judge(found: Measurement) -> tuple[str, ...]:
        return gate.against_side(found, "inductor", LIMITS, lambda: found).excesses

    assert judge(measurement(1.02e-3)) == ()
    assert judge(measurement(0.5e-3, peak_bytes=90_000, clones=0, clone_bytes=0)) == ()
    (line,) = judge(measurement(peak_bytes=100_001))
    assert line == (
        "peak bytes 100000 B → 100001 B (with inductor, now with exact), +1 B, +0.0 %; "
        "allowed is peak_bytes:0"
    )
    (line,) = judge(measurement(1.1e-3))
    assert "times that of inductor (surely" in line
