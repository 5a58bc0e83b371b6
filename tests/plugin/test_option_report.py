"""--reinplace-report."""

from __future__ import annotations

import pytest

TESTS = """
import torch
from programs import *

def test_clones():
    torch.compile(keep)(*inputs(keep))

def test_in_place():
    torch.compile(call_op)(*inputs(call_op))

def test_nothing():
    assert torch.ones(1) == 1
"""


def test_the_section_shows_the_clones_and_the_sums(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(TESTS)
    result = compiling.runpytest_inprocess("--reinplace-report")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "*= reinplace =*",
            "  bytes  count  candidate             reason      where           tests",
            "   32 B     1\N{MULTIPLICATION SIGN}  aten::index_put.self  still-read  programs.py:*      1",
            "      the old value is still read after this write; held back by sum_1",
            "      (aten::sum) at programs.py:*",
            "      hint: our pass reads it before the write*",
            "reinplace: 2 tests, 2 graphs, 2 candidates, 1 in place, 1 cloned, 32 B",
        ],
    )
    result.stdout.no_fnmatch_line("*test_nothing*")


def test_without_it_nothing_is_shown_or_captured(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        test_it=TESTS + "\n\ndef test_real(request):\n    assert request.node.user_properties == []\n"
    )
    result = compiling.runpytest_inprocess("-k", "nothing or real")
    result.assert_outcomes(passed=2, deselected=2)
    result.stdout.no_fnmatch_line("*= reinplace =*")


def test_a_session_that_compiles_nothing_says_so(compiling: pytest.Pytester) -> None:
    compiling.makepyfile("def test_nothing(): pass")
    result = compiling.runpytest_inprocess("--reinplace-report")
    result.stdout.fnmatch_lines(["reinplace: no test was captured: none ran torch.compile"])
    result.stdout.no_fnmatch_line("*= reinplace =*")


def test_it_imports_no_torch_for_tests_that_do_not_and_no_inductor(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_without_torch():
            assert "torch" not in sys.modules

        def test_eager():
            import torch

        def test_eager_and_captured():
            import torch
            assert torch._TorchCompileInductorWrapper.__call__.__module__ == "pytest_reinplace.base._torch"
            assert "torch._inductor.compile_fx" not in sys.modules
        """
    )
    result = pytester.runpytest_subprocess("--reinplace-report", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=3)


def test_what_steers_a_terminal_is_shown_and_not_obeyed(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        """
        import torch

        def test_odd(reinplace):
            code = "def fn(x):\\n    y = x * 2\\n    return y.index_put((first,), torch.ones(1)), y.sum()"
            names = {"torch": torch, "first": torch.tensor([0])}
            exec(compile(code, "\\x1b[31m<b>.py", "exec"), names)
            reinplace.run(names["fn"], torch.ones(8))
        """
    )
    result = compiling.runpytest_inprocess("--reinplace-report")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*32 B *aten::index_put.self*still-read*x1b[[]31m<b>.py:3*"])
    result.stdout.no_fnmatch_line("*\x1b[[]31m<b>*")
