"""Peaks held against their lower bound."""

from __future__ import annotations

from pytest_reinplace.lowered import over_bound
from pytest_reinplace.lowered.memory import Lowered, Memory

from .test_program import EIGHT, run

PROGRAM = Lowered("[fw 0/0]", run(f"buf0 = {EIGHT}", "kernel(buf0)", "return (buf0, )"))
NOTHING = Lowered("[fw 0/0]", run("return ()"))


def test_a_bound_is_known_where_each_program_is() -> None:
    known, unknown = Memory(32, (PROGRAM,)), Memory(32, (PROGRAM, Lowered("[bw 0/0]", None, "why")))
    assert over_bound.unknown([known, known], "inductor") == ""
    assert over_bound.unknown([known, unknown], "inductor") == "the lower bound of [bw 0/0] is not known: why"
    assert "no program of Inductor ran in it" in over_bound.unknown([known, Memory(3)], "inductor")
    assert over_bound.unknown([], "inductor").startswith("nothing was measured: max_peak_over_bound limits")
    assert "backend graph lowers nothing" in over_bound.unknown([known], "graph")


def test_what_holds_exactly_as_often_as_allowed_is_within() -> None:
    assert [*over_bound.excess([Memory(48, (PROGRAM,))], 1.5)] == []
    first, *told = over_bound.excess([Memory(49, (PROGRAM,))], 1.5)
    assert (
        first == "the peak, 49 B, is 1.531 times its lower bound, 32 B; the limit is max_peak_over_bound=1.5"
    )
    assert told[1] == "  lower bound 32 B by [fw 0/0]: kernel(buf0) (the peak is 1.53 times that)"


def test_where_nothing_is_needed_nothing_may_be_held() -> None:
    assert [*over_bound.excess([Memory(0, (NOTHING,))], 2)] == []
    first, *_ = over_bound.excess([Memory(8, (NOTHING,))], 2)
    assert first == "the peak, 8 B, is above its lower bound, 0 B; the limit is max_peak_over_bound=2"
