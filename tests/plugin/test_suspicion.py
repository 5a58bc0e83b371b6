"""A graph in which the pass wrote what our analysis forbids: its first call is compared unasked."""

from __future__ import annotations

import re

import pytest

HEAD = "import pytest, torch\nfrom programs import keep\n\n"
# ``keep`` writes 1 over twice the first element.
DIFFERENT, SAME, LARGE = "torch.ones(4)", "torch.full((4,), 0.5)", "torch.ones((64 << 18) + 1)"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            DIFFERENT,
            "is miscompiled: * forbids it; on its first call output 1 (sum_1): 1 of 1 elements differ*",
        ),
        (SAME, "may be miscompiled: * forbids it; its first call computed the same (pass *"),
        (
            LARGE,
            "may be miscompiled: * not compared: its inputs are large; --reinplace-verify compares them *",
        ),
    ],
)
def test_the_failure_says_what_the_first_call_computed(
    forced: pytest.Pytester, given: str, told: str
) -> None:
    forced.makepyfile(HEAD + f"def test_it(assert_reinplaced):\n    assert_reinplaced(keep, {given})\n")
    result = forced.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *graph [[]fw 0/0[]] {told}"])


def test_one_that_is_never_called_says_so(forced: pytest.Pytester) -> None:
    body = """
def test_it(assert_clones):
    with torch._subclasses.FakeTensorMode() as mode:
        torch.compile(keep)(mode.from_tensor(torch.ones(4)))
    assert assert_clones == []
"""
    forced.makepyfile(HEAD + body)
    forced.runpytest_inprocess().stdout.fnmatch_lines(
        ["E *may be miscompiled: *; not compared: it was never called with real tensors *"]
    )


@pytest.mark.parametrize("marker", ["@pytest.mark.reinplace", "@pytest.mark.reinplace(max_clones=9)"])
def test_a_marker_is_enough(forced: pytest.Pytester, marker: str) -> None:
    forced.makepyfile(HEAD + f"{marker}\ndef test_it():\n    torch.compile(keep)({DIFFERENT})\n")
    result = forced.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*graph [[]fw 0/0[]] breaks the contract: output 1 (sum_1): *",
            "  no program that shows it: add --reinplace-verify to get one",
        ]
    )


def test_a_report_tells_it_and_fails_nothing(forced: pytest.Pytester) -> None:
    forced.makepyfile(HEAD + f"def test_it():\n    torch.compile(keep)({DIFFERENT})\n")
    result = forced.runpytest_inprocess("--reinplace-report", "-v")
    result.assert_outcomes(passed=1)
    said = " ".join(result.stdout.str().split())
    assert re.search(r"\[fw 0/0\] is miscompiled: aten::index_put.self in place .* first call ", said)
