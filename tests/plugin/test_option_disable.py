"""--reinplace-disable."""

from __future__ import annotations

import pytest

TESTS = """
import pytest, torch
from programs import *

def test_plain():
    torch.compile(pure, backend="eager")(torch.ones(2))

def test_with_fixture(assert_reinplaced):
    raise SystemExit("ran")

@pytest.mark.reinplace(max_clones=0)
def test_with_limit():
    raise SystemExit("ran")

@pytest.mark.reinplace(pass_="exact")
def test_with_pass(request):
    assert request.node.user_properties == []
"""


def test_tests_that_need_the_plugin_are_skipped_and_the_others_run(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(TESTS)
    (compiling.path / "wrong.reinplace.yaml").write_text("nonsense: 1\n")
    result = compiling.runpytest_inprocess(
        "--reinplace-disable", "--reinplace-report", "--reinplace-json=out.json", "-rs"
    )
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(
        ["SKIPPED*--reinplace-disable: nothing is captured, so the pass would not be*"]
    )
    result.stdout.no_fnmatch_line("*= reinplace =*")
    assert not (compiling.path / "out.json").exists()


def test_without_it_they_run(compiling: pytest.Pytester) -> None:
    text = TESTS.replace("def test_with_fixture(assert_reinplaced)", "def test_with_fixture(reinplace)")
    compiling.makepyfile(text.replace('raise SystemExit("ran")', "torch.compile(update)(*inputs(update))"))
    result = compiling.runpytest_inprocess("-k", "fixture or limit")
    result.assert_outcomes(passed=2, deselected=2)


def test_a_wrong_pass_is_not_looked_for(compiling: pytest.Pytester) -> None:
    compiling.makepyfile("def test_it(): pass")
    compiling.runpytest_inprocess("--reinplace-disable", "--reinplace-pass=no.such:f").assert_outcomes(
        passed=1
    )
