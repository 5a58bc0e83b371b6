"""Whether one side is slower: bounds that assume nothing, and no false alarm."""

from __future__ import annotations

import random

import pytest

from pytest_reinplace.record.paired import FEWEST, ratio


def rounds(seed: int, factor: float, count: int = 31) -> tuple[list[float], list[float]]:
    """Return two sides whose machine drifts by half over the rounds and stalls one round in ten."""
    draw = random.Random(seed)
    times, others = [], []
    for number in range(count):
        drift = 1 + number / count / 2
        for side, usual in ((times, factor), (others, 1.0)):
            stall = draw.choice([1] * 9 + [draw.uniform(2, 20)])
            side.append(usual * drift * stall * draw.gauss(1, 0.01))
    return times, others


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_hold_the_truth(seed: int) -> None:
    found = ratio(*rounds(seed, 1.1))
    assert found is not None
    assert found.low <= 1.1 <= found.high
    assert 1.05 < found.low <= found.median <= found.high


def test_what_is_as_fast_is_seldom_called_slower() -> None:
    found = [ratio(*rounds(seed, 1.0)) for seed in range(1000)]
    assert sum(one is not None and one.low > 1 for one in found) <= 3


def test_stalls_do_not_hide_that_a_side_is_slower() -> None:
    found = [ratio(*rounds(seed, 1.1, 51)) for seed in range(100)]
    assert sum(one is not None and one.low > 1 for one in found) >= 99


def test_few_rounds_say_nothing() -> None:
    assert ratio([2.0] * (FEWEST - 1), [1.0] * (FEWEST - 1)) is None
    assert ratio([2.0] * FEWEST, [1.0] * FEWEST) is not None


def test_sides_of_different_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="the same rounds for both sides, got 2 and 3"):
        ratio([1.0] * 2, [1.0] * 3)
