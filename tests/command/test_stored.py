"""Reading reports, hostile ones as well."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_reinplace.record import stored
from pytest_reinplace.record.record import SCHEMA

from .reports import clone, graph, in_place, report, test


def test_a_report_is_read_back() -> None:
    found = stored.parse(report(tests={"b": test(clone(7)), "a": test(in_place(), peak_bytes=5)}), "x")
    assert list(found.tests) == ["a", "b"]
    assert found.tests["b"].record.counts()["clone_bytes"] == 7
    assert dict(found.tests["a"].measured) == {"peak_bytes": 5}


def test_what_only_a_newer_version_knows_is_left_aside() -> None:
    data = report(tests={"a": test(clone(reason="not-yet-known", colour="red"))}, news=1)
    (outcome,) = stored.parse(data, "x").tests["a"].record.outcomes
    assert outcome["reason"] is None
    assert "colour" not in outcome


@pytest.mark.parametrize("schema", [SCHEMA + 1, 10**18])
def test_a_report_from_the_future_is_refused(schema: int) -> None:
    with pytest.raises(
        stored.StoredError, match=f"^f.json: written by a newer .* schema is {schema}, .*upgrade"
    ):
        stored.parse(report(schema=schema), "f.json")


@pytest.mark.parametrize("schema", [0, -1, "1", 1.0, True, None, 10**30])
def test_a_schema_that_is_no_version_is_refused(schema: Any) -> None:
    with pytest.raises(stored.StoredError, match="expected 'schema' to be a number from 1"):
        stored.parse(report(schema=schema), "f.json")


_BAD: list[tuple[Any, str]] = [
    ([], "expected a JSON report of --reinplace-json"),
    ({"tests": {}}, "expected a JSON report of --reinplace-json"),
    (report(tests=[]), "expected 'tests' to be a mapping, got list"),
    (report(tests={"a": 1}), "test 'a': expected a mapping, got int 1"),
    (report(tests={"a": test(outcome="lost")}), "expected 'outcome' to be one of passed, failed, skipped"),
    (report(tests={"a": test(graphs=None)}), "expected 'graphs' to be a list, got NoneType"),
    (report(tests={"a": test(graphs=[3])}), "expected each graph to be a mapping"),
    (
        report(tests={"a": test(graphs=[graph(suspicious=[1])])}),
        "expected 'suspicious' to be a list of labels",
    ),
    (report(tests={"a": test(graphs=[graph(outcomes=[1])])}), "expected each outcome to be a mapping"),
    (report(tests={"a": test(clone(-1))}), "expected 'nbytes' to be a number of bytes"),
    (report(tests={"a": test(clone(2**63))}), "expected 'nbytes' to be a number of bytes, 0 to"),
    (report(tests={"a": test(clone(1.5))}), "expected 'nbytes' to be a number of bytes"),  # type: ignore[arg-type]
    (report(tests={"a": test(clone(True))}), "expected 'nbytes' to be a number of bytes"),
    (report(tests={"a": test(clone(label=None))}), "expected 'label' to be a string"),
    (report(tests={"a": test(clone(reason=[]))}), "expected 'reason' to be a string, got list"),
    (report(tests={"a": test(clone(hint=None))}), "expected 'hint' to be a string"),
    (report(tests={"a": test(clone(blockers=["x"]))}), "expected each blocker to be a mapping"),
    (report(tests={"a": test(clone(blockers=[{}]))}), "expected 'node' to be a string, got none"),
    (report(tests={"a": test(clone(follows="x"))}), "expected another candidate to be a mapping, got str"),
    (report(tests={"a": test(clone(copies={"node": "n"}))}), "expected 'label' to be a string, got none"),
    (report(tests={"a": test(peak_bytes="4")}), "expected 'peak_bytes' to be a number of bytes"),
    (report(tests={"a": test(runtime=-1)}), "expected 'runtime' to be seconds"),
    (report(tests={"a": test(runtime=float("nan"))}), "expected 'runtime' to be seconds"),
    (report(tests={"\x1b[2J\n": 1}), r"test '\\\\x1b\[2J\\\\n': expected"),
]


@pytest.mark.parametrize(("data", "message"), _BAD, ids=[message[:40] for _, message in _BAD])
def test_data_that_is_no_report_is_refused(data: Any, message: str) -> None:
    with pytest.raises(stored.StoredError, match=message) as caught:
        stored.parse(data, "some.json")
    assert str(caught.value).startswith("some.json: ")
    assert str(caught.value).isprintable()


_GOOD = json.dumps(report(tests={"a": test(clone())}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "got no valid JSON"),
        (_GOOD[:-20], "expected a whole JSON report of --reinplace-json, got no valid JSON: .*line 1 column"),
        (_GOOD.replace('"nbytes": 32', f'"nbytes": {"9" * 5000}'), "no valid JSON: Exceeds the limit"),
        (_GOOD.replace('"nbytes": 32', '"nbytes": Infinity'), "no valid JSON: Infinity is not a number"),
        (_GOOD.replace('"nbytes": 32', '"nbytes": 1e999'), "expected 'nbytes' to be a number of bytes"),
        ("[" * 100_000, "nested too deeply"),
        ('{"tests": {"a": 1, "a": 2}}', "the key 'a' occurs twice"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(stored.StoredError, match=message) as caught:
        stored.read(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(stored.StoredError, match="UTF-8"):
        stored.read(tmp_path / "bytes")
    with pytest.raises(stored.StoredError, match="cannot be read: No such file"):
        stored.read(tmp_path / "none")
    with pytest.raises(stored.StoredError, match="cannot be read: Is a directory"):
        stored.read(tmp_path)


def test_a_file_too_large_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MAX_BYTES", 10)
    (tmp_path / "a.json").write_text(_GOOD)
    with pytest.raises(stored.StoredError, match="expected at most 10 bytes"):
        stored.read(tmp_path / "a.json")


def test_outcomes_are_data_without_torch_and_the_real_ones_with_it() -> None:
    program = """
import sys
from pytest_reinplace.record import plain
first = plain.outcome_type()
assert plain.reason_type()("missed").sentence
assert "torch" not in sys.modules and "pytest_reinplace.passes" not in sys.modules
from pytest_reinplace.passes import Outcome, Reason
assert plain.outcome_type() is Outcome and plain.reason_type() is Reason and first is not Outcome
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
