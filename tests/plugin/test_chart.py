"""The chart of live bytes: steps at the right places, marks where the copies are."""

from __future__ import annotations

from typing import Any

from pytest_reinplace.reports.html.chart import chart


def memory(decided: list[int], functional: list[int], step: int = 1, **given: Any) -> dict[str, Any]:
    found = {"nodes": len(decided) * step, "step": step, "functional": functional, "decided": decided}
    peaks = {"peak_functional": max(functional), "peak_decided": max(decided), "copies": []}
    return found | peaks | given


def drawn(*args: Any, **given: Any) -> dict[str, Any]:
    found = chart(memory(*args, **given), {"a": "g0l1"})
    assert found is not None
    return found


def test_a_curve_is_made_of_steps() -> None:
    # the drawing is from 10 to 790, and from 190 at the bottom to 24 at the top
    found = drawn([0, 50, 50, 0], [0, 100, 100, 100])
    assert found["decided"] == "M10 190H205V107H595V190H790"
    assert found["functional"] == "M10 190H205V24H790"
    assert found["area"] == "M10 190H205V107H595V190H790V190H10Z"
    assert (found["most"], found["nodes"]) == ("100 B", 3)


def test_the_last_point_may_stand_for_fewer_nodes() -> None:
    assert drawn([1, 2], [1, 2], step=3, nodes=4)["decided"] == "M10 107H595V24H790"


def test_copies_are_marked_in_the_middle_of_their_nodes_and_linked() -> None:
    copies = [{"at": at, "node": node, "label": "l", "nbytes": 8} for at, node in ((1, "a"), (3, "b"))]
    marks = drawn([0, 50, 50, 0], [0, 100, 100, 100], copies=copies)["marks"]
    assert [(m["x"], m["y"], m["line"]) for m in marks] == [(302.5, 107, "g0l1"), (692.5, 190, None)]
    assert marks[0]["title"] == "l: 8 B copied at a"


def test_only_the_largest_of_many_copies_are_marked() -> None:
    copies = [{"at": 0, "node": "a", "label": "l", "nbytes": i} for i in range(100)]
    found = drawn([1], [1], copies=copies)
    assert (len(found["marks"]), found["left_out"]) == (60, True)
    assert not drawn([1], [1], copies=copies[:60])["left_out"]


def test_nothing_held_nothing_drawn() -> None:
    assert chart(memory([0], [0]), {}) is None
