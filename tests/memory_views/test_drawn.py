"""Bars over the positions of a program, and the bytes that are live."""

from __future__ import annotations

import pytest

from pytest_reinplace.lowered.allocation import Level, Origin, Taken
from pytest_reinplace.lowered.memory import Lowered, Workspace
from pytest_reinplace.memory_views.drawn import drawn

from .calls import allocation, call, held_at, program, unknown

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rows_that_count_are_what_is_live_at_each_position(seed: int) -> None:
    lowered = program(seed)
    one = drawn(lowered)
    assert one.live
    assert [held_at(one, position) for position in range(len(one.live))] == list(one.live)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_peak_is_that_of_the_call(seed: int) -> None:
    lowered = program(seed)
    one = drawn(lowered)
    assert (one.peak - one.aside, one.peak_at) == (lowered.peak, lowered.peak_at)
    counted = {row.name for row in one.rows if one.peak_at in row.held and row.kind == "value"}
    assert counted == {allocated.name for allocated in lowered.at_peak}


def test_what_was_held_before_the_whole_call_is_drawn_and_set_aside() -> None:
    given = allocation("arg0", 64, freed=1, is_input=True, moments=(0, 1))
    levels = Level(10, "a", 0, 0, 0), Level(11, "b", 0, -64, 0)
    taken = Taken((), (given,), levels)
    known, unknown, deeper = (drawn(Lowered("[fw 0/0]", taken, before=before)) for before in (80, 24, -100))
    assert [(row.kind, row.nbytes) for row in known.rows] == [("before", 16), ("input", 64)]
    assert (known.live, known.after, known.aside) == ((80, 80), 16, 0)
    assert [(row.kind, row.nbytes) for row in unknown.rows] == [("input", 64)]
    assert (unknown.live, unknown.after, unknown.aside) == ((64, 64), 0, 40)
    assert (deeper.live, deeper.after, deeper.aside) == ((64, 64), 0, 164)


def test_every_storage_has_a_row_in_program_order() -> None:
    lowered = program(7)
    assert lowered.taken is not None
    rows = [row for row in drawn(lowered).rows if row.kind == "value"]
    assert [row.name for row in rows] == [one.name for one in lowered.taken.allocations]


def test_a_row_says_what_the_storage_is_for() -> None:
    one = allocation(later=("buf1",), origin=Origin(("mm", "relu"), "model.py:3"), freed=2)
    levels = tuple(Level(10 + i, f"line {i}", 64, 64, 1) for i in range(3))
    (row,) = drawn(Lowered("[fw 0/0]", Taken((one,), (), levels))).rows
    assert row.title == (
        "buf0 (later buf1): 64 B, a value of the program; positions 0..2; nodes mm, relu; at model.py:3; "
        "line 10: buf0 = empty()"
    )


def test_of_two_calls_in_a_line_the_one_that_takes_more_counts() -> None:
    levels = tuple(Level(10 + i, f"line {i}", 0, 0, 0) for i in range(3))
    calls = tuple(Workspace(f"aten::{n}", n, 1, 11, "line 1") for n in (5, 9, 7))
    one = drawn(Lowered("[fw 0/0]", Taken((), (), levels), workspaces=calls))
    assert one.live == (0, 9, 0)
    assert [(row.name, list(row.held), list(row.span)) for row in one.rows] == [
        ("inside aten::5", [], [1]),
        ("inside aten::9", [1], [1]),
        ("inside aten::7", [], [1]),
    ]


def test_what_lives_within_one_line_is_drawn_without_counting() -> None:
    # Taken and released while less is held than when the line began.
    one = allocation(nbytes=8, born=1, freed=1, moments=(2, 3))
    levels = (Level(10, "a", 64, 64, 1), Level(11, "b", 64, 0, 1), Level(12, "c", 0, 0, 4))
    (row,) = drawn(Lowered("[fw 0/0]", Taken((one,), (), levels))).rows
    assert (list(row.held), row.span) == ([], range(1, 1))


def test_of_an_unknown_program_its_problem_is_kept() -> None:
    one = call(unknown()).programs[0]
    assert (one.rows, one.live, one.peak) == ((), (), 0)
    assert one.problem == "C++ programs are not supported"
