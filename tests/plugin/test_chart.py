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


def test_ticks_are_round_and_leave_room_for_the_peak() -> None:
    found = drawn([0, 100], [0, 5_000_000], nodes=2)
    assert [tick["text"] for tick in found["sizes"]] == ["1.0 MiB", "2.0 MiB", "3.0 MiB", "4.0 MiB"]
    assert found["sizes"][0]["y"] == round(190 - 166 * 2**20 / 5_000_000, 1)
    # the highest would be written over the peak
    assert [tick["text"] for tick in drawn([1 << 22], [1 << 22])["sizes"]] == [
        "1.0 MiB",
        "2.0 MiB",
        "3.0 MiB",
    ]
    for most in (*range(1, 40), 10**15):
        assert len(drawn([most], [most])["sizes"]) <= 5


def test_ticks_of_nodes() -> None:
    found = drawn([1] * 101, [1] * 101)["positions"]
    assert [tick["text"] for tick in found] == [0, 20, 40, 60, 80, 100]
    assert [tick["anchor"] for tick in found] == ["start", *["middle"] * 4, "end"]
    assert [tick["text"] for tick in drawn([1], [1])["positions"]] == [0]


def test_what_is_held_at_the_peak_is_linked_and_the_rest_is_summed() -> None:
    values = [{"node": "a", "element": "", "nbytes": 30, "last": 1}]
    values += [{"node": "b", "element": "self[1]", "nbytes": 10, "last": 3}]
    peak = drawn([0, 50], [0, 50], peak={"at": 1, "count": 4, "values": values})["peak"]
    assert [(v["name"], v["bytes"], v["last"], v["line"]) for v in peak["values"]] == [
        ("a", "30 B", 1, "g0l1"),
        ("b, self[1]", "10 B", 3, None),
    ]
    assert (peak["x"], peak["more"], peak["more_bytes"]) == (595, 2, "10 B")
    assert drawn([0, 50], [0, 50])["peak"] is None  # a report from before it was noted
