"""The limit on what programs hold: ``static_peak``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_reinplace.compare.comparison import compare
from pytest_reinplace.compare.comparison_json import as_json, schema
from pytest_reinplace.compare.comparison_text import text
from pytest_reinplace.compare.limit import limit
from pytest_reinplace.record.stored import StoredError

from ..plugin.documents import call, program
from ..plugin.test_report_schema import closed
from .reports import clone, held, stored, test


def holding(*peaks: int | None) -> dict[str, Any]:
    """Return a test that measured two calls, the second of programs that hold so much."""
    programs = [
        {
            "graph": "[fw 0/0]",
            "problem": "" if peak is not None else "no Python program",
            "before": 0,
            "static_peak": peak,
            "static_bound": peak,
            "needed_by": "kernel(buf0)",
        }
        for peak in peaks
    ]
    calls = [{"measured_peak": 0, "lower_bound": 0, "programs": some} for some in ([], programs)]
    return test(clone(), memory=calls)


@pytest.mark.parametrize(
    ("text", "old", "new", "over"),
    [
        ("static_peak:0", holding(512, 64), holding(64, 512), []),
        ("static_peak:32", holding(512), holding(544), []),
        (
            "static_peak:31B",
            holding(64, 512),
            holding(544),
            ["static peak 512 B → 544 B, +32 B, +6.2 %; allowed is static_peak:31B"],
        ),
        ("static_peak:6.25%", holding(512), holding(544), []),
        (
            "static_peak:6.24%",
            holding(512),
            holding(544),
            ["static peak 512 B → 544 B, +32 B, +6.2 %; allowed is static_peak:6.24%"],
        ),
    ],
)
def test_a_limit_on_the_static_peak(text: str, old: Any, new: Any, over: list[str]) -> None:
    assert held(old, new, text) == over


def test_reports_that_do_not_have_it_are_no_gate() -> None:
    (none,) = held(test(clone()), holding(512), "static_peak:0")
    assert none == (
        "static_peak:0: no compared test has static_peak in the old report; --reinplace-memory records it, "
        "of what reinplace.run and assert_peak call"
    )
    missing = ["static peak 512 B before, not measured now (static_peak:0)"]
    assert held(holding(512), test(clone()), "static_peak:0") == missing
    assert held(holding(512), holding(512, None), "static_peak:0") == missing  # one program is not known


def test_it_is_told_and_described() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    found = compare(
        stored({"t.py::a": holding(512)}), stored({"t.py::a": holding(256)}), (limit("static_peak:0"),)
    )
    data = json.loads(as_json(found))
    jsonschema.validate(data, closed(schema()))
    assert data["bounds"] == {"static_peak:0": "held"}
    assert found.rows[0].improved == ["static_peak"]
    assert any("512 B → 256 B" in line for line in text(found))


def test_a_wrong_limit_says_what_was_expected() -> None:
    with pytest.raises(ValueError, match=r"expected static_peak to be limited by bytes \(static_peak:0, "):
        limit("static_peak:x")
    with pytest.raises(ValueError, match="static_peak"):
        limit("static_peek:0")


def test_what_is_told_of_a_call_is_read_back() -> None:
    one = call(608, program(before=-32, peak=608), program(None))
    read = stored({"t.py::a": test(clone(), memory=[one, {**one, "news": 1}])}).records[0].memory
    assert read == (one, one)
    old = {**one, "unexplained": None, "programs": [{"static_peak": 3}]}  # as it was before these were told
    (less,) = stored({"t.py::a": test(clone(), memory=[old])}).records[0].memory or ()
    assert less == {
        "measured_peak": 608,
        "lower_bound": 512,
        "programs": [
            {
                "graph": "",
                "problem": "",
                "needed_by": "",
                "static_peak": 3,
                "static_bound": None,
                "before": 0,
                "peak": None,
            }
        ],
    }


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({}, "expected 'memory' to be a list"),
        ([3], "expected each call in 'memory' to be a mapping, got int 3"),
        ([{}], "expected 'programs' to be a list, got none"),
        ([{"programs": ["x"]}], "expected each program to be a mapping, got str 'x'"),
        ([{"programs": [{"static_peak": -1}]}], "expected 'static_peak' to be a number of bytes"),
        ([{"programs": [{"static_peak": "1"}]}], "expected 'static_peak' to be a number of bytes"),
        ([{"programs": [{"problem": 1}]}], "expected 'problem' to be a string, got int 1"),
        ([{"programs": [{"graph": None}]}], "expected 'graph' to be a string, got NoneType"),
        ([{"programs": [{"peak": 1.5}]}], "expected 'peak' to be a whole number, got float 1.5"),
        ([{"programs": [{"before": "x"}]}], "expected 'before' to be a whole number, got str 'x'"),
        ([{"programs": []}], "expected 'measured_peak' to be a whole number"),
        ([{"programs": [], "measured_peak": 10**30}], "expected 'measured_peak' to be a whole number"),
        ([{"programs": [], "measured_peak": 1, "lower_bound": True}], "expected 'lower_bound' to be a whole"),
        (
            [{"programs": [], "measured_peak": 1, "lower_bound": 1, "unexplained": 0}],
            "expected 'outside' to be a whole number",
        ),
    ],
)
def test_a_damaged_report_is_refused(memory: Any, message: str) -> None:
    with pytest.raises(StoredError, match=message):
        stored({"t.py::a": test(clone(), memory=memory)})
