"""The table of the copies that lowering adds to the corpus."""

from __future__ import annotations

from typing import Any

import pytest

from .test_harness import load

_table = load("lowering_table")
PAGE, rows, summary, written = _table.PAGE, _table.rows, _table.summary, _table.written


def _report(*copies: tuple[str, int, bool], entry: str = "b", **more: Any) -> dict[str, Any]:
    found = [
        {
            "label": label,
            "nbytes": size,
            "cause": "strides",
            "meant": meant,
            "source": "/x/pytest_reinplace/corpus/vision/splatting.py:47",
        }
        for label, size, meant in copies
    ]
    graph = {"copies": found} | more
    return {"tests": {f"corpus/{entry}.reinplace.yaml::{entry}": {"graphs": [graph]}}}


def test_copies_of_a_line_are_one_row_and_those_that_are_meant_none() -> None:
    report = _report(("aten::mm.self", 4, False), ("aten::mm.self", 8, False), ("aten::clone", 64, True))
    assert rows([report]) == [("b", "12", "2", "aten::mm.self", "strides", "corpus/vision/splatting.py:47")]
    assert summary([report, _report(entry="a")]) == "Of 2 entries lowering adds copies to 1."
    assert summary([_report(copies=None, unlowered="why")]) == (
        "Of 0 entries lowering adds copies to 0; of 1 nothing is known."
    )


def test_elements_of_a_list_are_one_row() -> None:
    [row] = rows([_report(("aten::cat.tensors[0]", 4, False), ("aten::cat.tensors[11]", 4, False))])
    assert row[1:4] == ("8", "2", "aten::cat.tensors[*]")


def test_an_entry_has_its_largest_copies_first() -> None:
    reports = [_report(("x.y", 4, False), ("z.w", 8, False)), _report(("x.y", 2, False), entry="a")]
    assert [row[:4] for row in rows(reports)] == [
        ("a", "2", "1", "x.y"),
        ("b", "8", "1", "z.w"),
        ("b", "4", "1", "x.y"),
    ]


def test_the_table_is_written_into_its_place() -> None:
    page = PAGE.read_text(encoding="utf-8")
    changed = written(page, [_report(("aten::mm.self", 4, False))])
    assert "\n| b | 4 | 1 | `aten::mm.self` | strides | corpus/vision/splatting.py:47 |\n" in changed
    assert changed.startswith(page[: page.index("<!-- table")])
    assert written(changed, []) == written(page, [])
    with pytest.raises(ValueError, match="place for the table"):
        written("nothing", [])
