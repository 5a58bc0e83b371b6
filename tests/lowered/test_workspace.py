"""Events of a profile, cut in lines and given to calls."""

from __future__ import annotations

from typing import Any

from pytest_reinplace.lowered.calls import MARK
from pytest_reinplace.lowered.workspace import Extern, Ran, timeline

A, B, C, D = 0xA, 0xB, 0xC, 0xD


def events(*found: Any) -> list[tuple[int, Any]]:
    """Number events by their order: a text is a mark, the rest are bytes, address, operators by number."""
    return [(i, f"{MARK}{event}" if isinstance(event, str) else event) for i, event in enumerate(found)]


def test_what_a_call_holds_beyond_what_it_leaves_is_its_workspace() -> None:
    convolution = ((4, "aten::convolution"), (5, "aten::empty"))
    found = timeline(
        events(
            "0:-1",
            "0:0",
            (100, A, ()),
            "0:1",
            (8, B, convolution),
            (30, C, convolution),
            (40, D, convolution),
            (-30, C, convolution),
            (-40, D, convolution[:1]),
            "0:2",
            (-100, A, ()),
            "0:-2",
        )
    )
    assert (found.highest, found.outside) == (178, 0)
    first, second, third = found.calls[0].ran
    assert first == Ran(100, 100)
    assert second == Ran(178, 108, (Extern("aten::convolution", 70, 8),))
    assert third == Ran(108, 8)


def test_an_operator_that_surrounds_the_line_is_not_the_call() -> None:
    surrounding = ((0, "## Call CompiledFxGraph"),)
    found = timeline(events("0:-1", "0:0", (8, A, surrounding), "0:-2"))
    assert found.calls[0].ran == (Ran(8, 8),)


def test_levels_count_from_where_the_program_begins() -> None:
    found = timeline(
        events((50, A, ()), "0:-1", (16, B, ()), "0:0", (8, C, ()), (-50, A, ()), "0:-2", (1, D, ()))
    )
    assert found.calls[0].before == 66
    assert found.calls[0].ran == (Ran(8, -42),)
    assert (found.outside, found.highest) == (66, 74)


def test_calls_inside_a_line_of_another_program_are_apart() -> None:
    found = timeline(
        events(
            *("0:-1", "0:0", (8, A, ()), "1:-1", "1:0", (4, B, ()), "1:-2", (2, C, ()), "0:1", "0:-2"),
        )
    )
    assert found.calls[1].ran == (Ran(4, 4),)
    assert found.calls[0].ran == (Ran(14, 14), Ran(14, 14))
