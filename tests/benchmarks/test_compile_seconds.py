"""First calls are timed in processes of their own, and what a process cannot do is left out."""

from __future__ import annotations

from typing import Any

import pytest

from .test_harness import load

compile_seconds: Any = load("compile_seconds")


def test_what_both_sides_took_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    found = {
        "one": {"stock": [2.0, 4.0, 3.0], "ours": [6.0]},
        "two": {"stock": [4.0], "ours": [2.0]},
        "three": {"stock": [1.0]},
    }
    compile_seconds._print(found, 3)
    told = capsys.readouterr().out.splitlines()
    assert told == [
        "one: 6.00 s, stock 3.00 s: 2.00",
        "two: 2.00 s, stock 4.00 s: 0.50",
        "2 of 3 entries by both sides: geometric mean 1.000",
    ]


def test_a_process_that_fails_is_told_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_seconds._apart("no-such-entry", "ours", "cpu", until=float("inf")) is None
    assert "no-such-entry, ours: " in capsys.readouterr().err
    assert compile_seconds._apart("no-such-entry", "ours", "cpu", until=0) is None
    assert not capsys.readouterr().err


def test_a_first_call_is_timed() -> None:
    took = compile_seconds._apart("ring-buffer", "ours", "cpu", until=float("inf"))
    assert took is not None and took > 0
