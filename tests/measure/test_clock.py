"""Interleaving: every side in every round, none always first, the state put back before each."""

from __future__ import annotations

import gc
import itertools
from collections import Counter

import pytest

from pytest_reinplace.measure import clock


def test_sides_are_interleaved_and_restored() -> None:
    said: list[str] = []
    numbers: list[int] = []
    sides = {name: (lambda name=name: said.append(name)) for name in "abc"}
    found = clock.interleaved(sides, "cpu", 2, 6, lambda: said.append("|"), numbers.append)
    assert {name: len(times) for name, times in found.items()} == {"a": 6, "b": 6, "c": 6}
    assert all(time >= 0 for times in found.values() for time in times)
    assert numbers == [1, 2, 3, 4, 5, 6]
    turns = "".join(said).split("|")[1:]
    assert all(turn in ("aa", "bb", "cc") for turn in turns)
    order = [turn[0] for turn in turns]
    firsts = Counter(order[i] for i in range(0, 18, 3))
    assert max(firsts.values()) <= 2
    before = Counter(itertools.pairwise(order))
    assert before["a", "b"] and before["b", "a"]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_rests_and_is_left_as_it_was(enabled: bool) -> None:
    states: list[bool] = []
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        clock.interleaved(
            {"a": lambda: states.append(gc.isenabled())}, "cpu", 1, 1, lambda: None, lambda _: None
        )
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()
    assert states == [False]


@pytest.mark.parametrize(("one", "calls"), [(1.0, 1), (1e-3, 5), (1e-9, 20), (0.0, 20)])
def test_a_round_has_few_calls_and_is_long_enough(one: float, calls: int) -> None:
    assert clock.calls_for(one) == calls
