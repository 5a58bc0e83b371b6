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


def test_the_section_shows_every_compiling_test_and_the_clones(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(TESTS)
    result = compiling.runpytest_inprocess("--reinplace-report")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "*= reinplace =*",
            "*::test_clones: 1 graph, 1 candidate, 0 in place, 1 cloned, 32 B",
            "*::test_in_place: 1 graph, 1 candidate, 1 in place, 0 cloned",
            "total of 2 tests: 2 graphs, 2 candidates, 1 in place, 1 cloned, 32 B",
            "all clones, largest first:",
            "  aten::index_put.self at programs.py:*: 32 B, the old value is still read after this write",
            "    held back by sum_1 (aten::sum) at programs.py:*; hint: our pass reads it before the write*",
            "    in *::test_clones",
        ]
    )
    result.stdout.no_fnmatch_line("*test_nothing:*")


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
    result.stdout.fnmatch_lines(["no test was captured: none ran torch.compile"])


def test_only_the_ten_largest_clones_are_shown(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        """
        import pytest, torch
        from programs import keep

        @pytest.mark.parametrize("size", range(1, 13))
        def test_size(size):
            torch.compile(keep, dynamic=False)(torch.ones(size))
        """
    )
    result = compiling.runpytest_inprocess("--reinplace-report")
    result.stdout.fnmatch_lines(["the 10 largest of 12 clones, largest first:", "*: 48 B,*", "*: 12 B,*"])
    result.stdout.no_fnmatch_line("*index_put.self at*: 8 B,*")


def test_clones_of_one_line_for_one_reason_are_shown_once(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        layers="""
        def layers(x, parts):
            return [x.index_put((at,), part) for at, part in parts], x.sum()
        """,
        test_it="""
        import torch
        from layers import layers

        def test_layers():
            parts = [(torch.tensor([i % 4]), torch.full((1, 2), i)) for i in range(12)]
            wide = [(torch.tensor([0]), torch.ones(1, 4).long())]
            both = torch.compile(lambda x, y: (layers(x, parts), layers(y, wide)))
            both(torch.zeros(4, 2).long(), torch.zeros(4, 4).long())

        def test_a_layer():
            torch.compile(layers)(torch.zeros(4, 2), [(torch.tensor([0]), torch.ones(1, 2))])
        """,
    )
    result = compiling.runpytest_inprocess("--reinplace-report")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "all clones, largest first:",
            "  aten::index_put.self at layers.py:2: 128 B, the old value is still read after this write",
            "    held back by*",
            "    in *::test_layers",
            "  aten::index_put.self at layers.py:2: 64 B, the old value is still read after this write",
            "    held back by*",
            "    in *::test_layers, 12 times: 768 B together",
            "  aten::index_put.self at layers.py:2: 32 B, the old value is still read after this write",
            "    held back by*",
            "    in *::test_a_layer",
        ],
        consecutive=True,
    )


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
    result.stdout.fnmatch_lines(["  aten::index_put.self at *x1b[[]31m<b>.py:3: 32 B,*"])
    result.stdout.no_fnmatch_line("*\x1b[[]31m<b>*")
