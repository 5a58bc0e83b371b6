"""The diff of a graph before and after a pass: what is told changed, and where its clones are seen."""

from __future__ import annotations

from pytest_reinplace.picture.listing import Line
from pytest_reinplace.reports.html.diff import compared, folded, places


def lines(*texts: str) -> list[Line]:
    return [Line(text.partition(" ")[0].rstrip(":"), text) for text in texts]


def told(before: list[Line], after: list[Line]) -> list[tuple[str, str]]:
    return [(row.sign, row.line.node) for row in compared(before, after)]


BEFORE = lines("x", "put = aten.put(x)", "sum = aten.sum(x)", "return (put, sum)")


def test_what_was_removed_comes_before_what_was_made() -> None:
    after = lines("x", "put_ = aten.put_(x)", "sum = aten.sum(x)", "return (x, sum)")
    assert told(BEFORE, after) == [
        ("", "x"),
        ("-", "put"),
        ("+", "put_"),
        ("", "sum"),
        ("-", "return"),
        ("+", "return"),
    ]


def test_another_name_is_no_difference() -> None:
    after = lines("x", "put_default = aten.put(x)", "sum = aten.sum(x)", "return (put_default, sum)")
    assert {sign for sign, _ in told(BEFORE, after)} == {""}
    assert [row.node for row in compared(BEFORE, after)] == ["x", "put", "sum", "return"]
    # the same operator of another operand is one, whatever its name
    other = lines("x", "put_default = aten.put(sum)", "sum = aten.sum(x)", "return (put_default, sum)")
    assert ("+", "put_default") in told(BEFORE, other)


def test_two_that_compute_the_same_keep_their_order() -> None:
    before = lines("x", "a = f(x)", "b = f(x)", "return (a, b)")
    after = lines("x", "c = f(x)", "d = f(x)", "return (c, d)")
    assert [(row.sign, row.node) for row in compared(before, after)][1:3] == [("", "a"), ("", "b")]


def test_a_name_inside_that_of_an_operator_is_none() -> None:
    before, after = lines("x", "y = put.sum(x)"), lines("x", "put = put.sum(x)", "z = aten.put.sum(x)")
    assert told(before, after) == [("", "x"), ("", "put"), ("+", "z")]


def test_where_lines_are_left_out_nothing_is_told() -> None:
    gap = Line("", "… 3 lines left out")
    after = lines("x", "fresh = f(x)")
    for sides in ((BEFORE, [*after, gap]), ([*BEFORE, gap], after)):
        assert {row.sign for row in compared(*sides)} == {""}


def test_a_clone_is_seen_where_it_is_made() -> None:
    kept = compared(BEFORE, lines("x", "put_default = aten.put(x)", "return (put_default,)"))
    assert {i: kept[i].line.node for i in places(kept, ["put"])} == {1: "put_default"}
    written = compared(
        BEFORE, lines("x", "clone = aten.clone(x)", "put_ = aten.put_(clone)", "return (clone,)")
    )
    assert [(written[i].line.node, node) for i, node in places(written, ["put", "gone"]).items()] == [
        ("clone", "put")
    ]
    dropped = compared(BEFORE, lines("x"))
    assert [(dropped[i].sign, dropped[i].line.node) for i in places(dropped, ["put"])] == [("-", "put")]


def test_what_is_the_same_is_folded_around_what_is_not() -> None:
    before = lines(*(f"n{i} = f({i})" for i in range(40)))
    after = [*before[:20], Line("n20", "n20 = g(20)"), *before[21:]]
    rows = compared(before, after)
    kept = list(folded(rows, [], 100))
    assert [row.line.text for i, row in kept if i < 0] == [
        "… 17 lines are the same",
        "… 16 lines are the same",
    ]
    assert [row.line.node for i, row in kept if i >= 0] == [
        *("n17", "n18", "n19", "n20", "n20", "n21", "n22", "n23"),
    ]
    assert all(rows[i] is row for i, row in kept if i >= 0)
    assert [i for i, _ in folded(rows, [0], 100)][:5] == [0, 1, 2, 3, -1]
    cut = list(folded(rows, range(41), 10))
    assert sum(i >= 0 for i, _ in cut) == 10
    assert cut[-1][1].line.text == "… 31 lines left out"
