"""Text that fits a terminal."""

from __future__ import annotations

import pytest

from pytest_reinplace.base.fit import aligned, begun, columns, shortened, wrapped

PATH = "serving/models/attention/paged.py:12"


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        (PATH, 36, PATH),
        (PATH, 35, "serving/…/attention/paged.py:12"),
        (PATH, 30, "serving/…/paged.py:12"),
        (PATH, 20, "…/paged.py:12"),
        (PATH, 12, "pag…ed.py:12"),
        ("/home/me/model.py:3", 15, "/…/model.py:3"),
        ("a/b/test_x.py::test_y[p/q]", 24, "…/test_x.py::test_y[p/q]"),
        ("a/b/test_x.py::test_y[p/q]", 16, "…::test_y[p/q]"),
        ("a/b/test_x.py::test_y[p/q]", 8, "te…[p/q]"),
        ("aten::index_put.self", 17, "…::index_put.self"),
        ("aten::index_put.self", 9, "in…t.self"),
        ("x" * 9, 3, "…xx"),
        ("漢字漢字漢字", 7, "漢…漢字"),
    ],
)
def test_names_are_shortened_where_they_tell_least(text: str, most: int, shown: str) -> None:
    assert shortened(text, most) == shown
    assert columns(shown) <= most


def test_sentences_are_broken_between_words() -> None:
    assert wrapped("the old value is read", 10, "- ", "  ") == ["- the old", "  value is", "  read"]
    assert wrapped(f"at {PATH}", 15, "", "  ") == ["at", "  …/paged.py:12"]
    assert wrapped(f"at {PATH}", 20, "", "  ", whole=True) == ["at", f"  {PATH}"]
    assert wrapped("", 20) == []


def test_the_beginning_of_a_sentence_says_that_more_follows() -> None:
    assert begun("could not be judged", 19) == "could not be judged"
    assert begun("could not be judged", 11) == "could not…"
    assert columns(begun("漢字漢字", 5)) == 5


def test_names_begin_at_the_left_and_figures_end_at_the_right() -> None:
    rows = list(aligned([("side", "clones"), ("漢字漢", "2"), ("e\u0301", "10")]))
    assert rows == [["side  ", "clones"], ["漢字漢", "     2"], ["e\u0301     ", "    10"]]
