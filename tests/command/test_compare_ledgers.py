"""Limits on what passes and rules did: ``pass_copies``, ``pass_seconds``, ``matches:RULE``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_reinplace.compare.comparison import compare
from pytest_reinplace.compare.comparison_json import as_json, schema
from pytest_reinplace.compare.comparison_text import text
from pytest_reinplace.compare.limit import limit
from pytest_reinplace.record.stored import StoredError, parse

from ..plugin.test_report_schema import closed
from .reports import application, clone, followed, held, report, stored, test

COPY = application(copies_added=["aten::clone.self"], copy_bytes=64)
SLOW = application(seconds=0.5)


@pytest.mark.parametrize(
    ("text", "old", "new", "over"),
    [
        ("pass_copies:0", [COPY], [COPY], []),
        ("pass_copies:0", [COPY], [], []),
        ("pass_copies:1", [], [COPY], []),
        (
            "pass_copies:0",
            [COPY],
            [COPY, COPY],
            ["pass copies 1 → 2, +1, +100.0 %; allowed is pass_copies:0; more by fuse_mine 1 → 2"],
        ),
        ("pass_seconds:20%", [SLOW], [application(seconds=0.6)], []),
        (
            "pass_seconds:20%",
            [SLOW],
            [application(seconds=0.7)],
            ["pass seconds 500 ms → 700 ms, +200 ms, +40.0 %; allowed is pass_seconds:20%"],
        ),
        ("matches:fuse_mine:0", [COPY], [COPY, COPY], []),
        ("matches:fuse_mine:1", [COPY], [], []),
        (
            "matches:fuse_mine:0",
            [COPY, COPY],
            [COPY],
            ["fuse_mine fired 2 times before, 1 time now; allowed is matches:fuse_mine:0"],
        ),
        (
            "matches:fuse_*:0",
            [COPY],
            [application("other")],
            ["fuse_* fired 1 time before, 0 times now; allowed is matches:fuse_*:0"],
        ),
        ("matches:pass_pattern_1:0", [COPY], [COPY], []),
        ("matches:mine:Manager:0", [application("", **{"pass": "mine:Manager"})], [COPY], ["*"]),
    ],
)
def test_a_limit_on_passes(text: str, old: list[Any], new: list[Any], over: list[str]) -> None:
    found = held(followed(*old), followed(*new), text)
    assert found == over or (over == ["*"] and len(found) == 1)


def test_a_rule_that_never_fired_fails_with_the_nearest_name() -> None:
    found = held(followed(COPY), followed(COPY), "matches:fuse_mina:0")
    assert found == [
        "matches:fuse_mina:0: no rule or pass called 'fuse_mina' fired in either report: "
        "did you mean 'fuse_mine'?"
    ]


def test_reports_without_ledgers_are_no_gate() -> None:
    plain = test(clone())
    assert held(plain, plain, "matches:fuse_mine:0") == [
        "matches:fuse_mine:0: neither report says which rules fired; --reinplace-ledger records it"
    ]
    assert held(plain, followed(COPY), "pass_copies:0") == [
        "pass_copies:0: no compared test has pass_copies in the old report; --reinplace-ledger records it"
    ]
    assert held(followed(COPY), plain, "pass_copies:0", "matches:fuse_mine:0") == [
        "pass copies 1 before, not measured now (pass_copies:0)",
        "fuse_mine fired 1 time before, not recorded now (matches:fuse_mine:0)",
    ]


def test_what_is_written_is_described() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    limits = limit("pass_copies:0"), limit("matches:fuse_mine:0")
    found = compare(stored({"t.py::a": followed(COPY)}), stored({"t.py::a": followed()}), limits)
    data = json.loads(as_json(found))
    jsonschema.validate(data, closed(schema()))
    assert data["bounds"] == {"pass_copies:0": "held", "matches:fuse_mine:0": "exceeded"}


def test_times_alone_are_no_change() -> None:
    found = compare(
        stored({"t.py::a": followed(COPY)}), stored({"t.py::a": followed(COPY | {"seconds": 9.0})})
    )
    assert found.rows[0].changed == [] and found.rows[0].improved == []
    assert "1 test in both reports, 1 unchanged" in list(text(found))
    better = compare(stored({"t.py::a": followed(COPY)}), stored({"t.py::a": followed()}))
    assert better.rows[0].improved == ["pass_copies"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rule": 3}, "expected 'rule' to be a string, got int 3"),
        ({"copies_added": [1]}, r"expected 'copies_added' to be a list of labels, got list \[1\]"),
        ({"nodes": "many"}, "expected 'nodes' to be a whole number, got str 'many'"),
        ({"seconds": -1}, "expected 'seconds' to be seconds, 0 or more, got int -1"),
        ({"finding": {"status": "same"}}, "expected 'text' to be a string, got none"),
        ({"finding": 1}, "expected 'finding' to be a mapping, got int 1"),
        ({"source": 1}, "expected 'source' to be a string, got int 1"),
    ],
)
def test_a_damaged_ledger_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StoredError, match=message):
        parse(report(tests={"t.py::a": followed(application(**changes))}), "x.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("matches:0", r"expected matches to be limited by a rule and a whole number \(matches:RULE:0\)"),
        ("matches:rule:5%", "expected matches to be limited by a rule"),
        ("pass_seconds:3", r"expected pass_seconds to be limited by a percentage \(pass_seconds:20%\)"),
        ("pass_copies:1KiB", "expected pass_copies to be limited by a whole number"),
        ("match:rule:0", "no metric is called 'match': did you mean 'matches'"),
    ],
)
def test_a_wrong_limit_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        limit(text)
