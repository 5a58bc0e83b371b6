"""Workers of pytest-xdist: one report and one file, the same as from a serial run."""

from __future__ import annotations

import pytest

TESTS = """
import torch
from programs import *

def test_clones():
    torch.compile(keep)(*inputs(keep))

def test_in_place(assert_reinplaced):
    assert_reinplaced(call_op, *inputs(call_op))
"""


def test_two_workers_report_like_one_process(compiling: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    compiling.makepyfile(test_it=TESTS)
    compiling.runpytest_inprocess("--reinplace-json=serial.json").assert_outcomes(passed=2)
    result = compiling.runpytest_subprocess("--reinplace-report", "--reinplace-json=parallel.json", "-n", "2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_clones: 1 graph, 1 candidate, 0 in place, 1 cloned, 32 B",
            "test_it.py::test_in_place: 1 graph, 1 candidate, 1 in place, 0 cloned",
        ]
    )
    assert (compiling.path / "serial.json").read_text() == (compiling.path / "parallel.json").read_text()
