"""Where a program holds more with our passes than with Inductor's, the measure that is the reason is told."""

from __future__ import annotations

import pytest

from pytest_reinplace.passes.oracle import peaks
from pytest_reinplace.passes.oracle.peaks import Reason, reasons, table
from pytest_reinplace.passes.oracle.setting import Setting

HARD = Setting(hard=True)


def test_the_measure_is_named() -> None:
    assert [reason.name for reason in reasons(110000007, HARD)] == ["late-epilogue, merged-outputs"]


def test_a_program_that_holds_no_more_has_no_reason() -> None:
    assert reasons(110000000, HARD) == []


def test_the_table_counts_programs_and_those_that_are_wrong_without() -> None:
    found = [[Reason(1, "first", is_needed=True), Reason(1, "second")], [Reason(2, "first")], []]
    assert table(found).splitlines()[1:] == [
        "        2              1  first",
        "        1              0  second",
    ]


def test_what_no_measure_explains_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peaks.Processes, "results", lambda self, seeds, _: [[Reason(n, "?")] for n in seeds])
    assert peaks.main(["7"]) == 0
    monkeypatch.setattr(peaks, "_SEVERAL", "?")
    assert peaks.main(["7"]) == 1
    assert "seed 7: ?" in capsys.readouterr().out
