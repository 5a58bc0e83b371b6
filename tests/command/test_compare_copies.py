"""Limits on what lowering copies: ``copies`` and ``copy_bytes``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_reinplace.base.lowering_copy import LoweringCopy
from pytest_reinplace.compare.comparison import compare
from pytest_reinplace.compare.comparison_json import as_json, schema
from pytest_reinplace.compare.comparison_text import text
from pytest_reinplace.compare.limit import limit

from ..plugin.test_report_schema import closed
from .reports import clone, graph, held, stored, test


def lowered(*sizes: int, meant: int = 0) -> dict[str, Any]:
    """Return a test in whose graph lowering adds copies of these sizes, and the program means others."""
    added = [LoweringCopy("aten::mm.self", size, "strides", "buf0", "arg0_1") for size in sizes]
    said = [LoweringCopy("aten::clone", 8, "program", "buf1", "arg1_1", meant=True)] * meant
    return {
        "outcome": "passed",
        "graphs": [graph(clone(), copies=[one.to_dict() for one in [*added, *said]])],
    }


@pytest.mark.parametrize(
    ("text", "old", "new", "over"),
    [
        ("copies:0", lowered(64), lowered(128), []),
        ("copies:0", lowered(64), lowered(64, meant=3), []),
        ("copies:1", lowered(64), lowered(64, 64), []),
        ("copies:0", lowered(64), lowered(64, 64), ["copies 1 → 2, +1, +100.0 %; allowed is copies:0"]),
        ("copy_bytes:64", lowered(64), lowered(128), []),
        (
            "copy_bytes:1KiB",
            lowered(1024),
            lowered(1024, 2048),
            ["copy bytes 1.0 KiB → 3.0 KiB, +2048 B, +200.0 %; allowed is copy_bytes:1KiB"],
        ),
    ],
)
def test_a_limit_on_copies(text: str, old: Any, new: Any, over: list[str]) -> None:
    assert held(old, new, text) == over


def test_reports_without_copies_are_no_gate() -> None:
    plain = test(clone())
    assert held(plain, lowered(64), "copies:0") == [
        "copies:0: no compared test has copies in the old report; only tests with backend inductor have"
    ]
    assert held(lowered(64), plain, "copies:0") == ["copies 1 before, not measured now (copies:0)"]


def test_they_are_told_and_described() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    limits = limit("copies:0"), limit("copy_bytes:0")
    found = compare(stored({"t.py::a": lowered(64, 64)}), stored({"t.py::a": lowered(96)}), limits)
    data = json.loads(as_json(found))
    jsonschema.validate(data, closed(schema()))
    assert data["bounds"] == {"copies:0": "held", "copy_bytes:0": "held"}
    assert found.rows[0].improved == ["copies", "copy_bytes"]
    assert any("128 B → 96 B" in line for line in text(found))


def test_a_wrong_limit_says_what_was_expected() -> None:
    with pytest.raises(ValueError, match="expected copies to be limited by a whole number"):
        limit("copies:1KiB")
    with pytest.raises(ValueError, match=r"expected copy_bytes to be limited by bytes \(copy_bytes:0, "):
        limit("copy_bytes:x")
