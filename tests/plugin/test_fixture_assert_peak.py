"""The fixture assert_peak."""

from __future__ import annotations

import pytest


def run(project: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    project.makepyfile(
        test_it=f"import torch\nfrom programs import *\n\ndef test_it(assert_peak):\n{lines}\n"
    )
    return project.runpytest_inprocess(*arguments)


SINE = "def two(x):\n    return (x.sin() @ x).relu()\n"


@pytest.mark.usefixtures("unoptimized")
def test_a_peak_that_is_too_high_tells_what_was_alive(compiling: pytest.Pytester) -> None:
    body = f"""
{SINE}
assert assert_peak(two, torch.ones(8, 8)) <= "512B"
found = assert_peak(two, torch.ones(8, 8))
assert found == 512
assert found < 513
assert found.memory.unexplained == 0
assert found.memory.at_peak.taken.peak == 512
assert_peak(two, torch.ones(8, 8)) <= "0.25KiB"
"""
    result = run(compiling, body, "--reinplace-backend=inductor")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *AssertionError: the peak is 512 B, expected at most 256 B (pass inductor, backend inductor)",
            "E * measured peak 512 B = 512 B that [[]fw */0] holds; unexplained: 0 B",
            "E * lower bound 512 B by [[]fw */0]: *.mm(buf0, *, out=buf1) (the peak is 1.00 times that)",
            "E * at the peak [[]fw */0] runs: buf1 = empty_strided_cpu((8, 8), (8, 1), torch.float32)",
            "E * 256 B buf0 for sin at test_it.py:6",
            "E * 256 B buf1 (later buf2) for *mm* at test_it.py:6",
        ],
        consecutive=True,
    )


def test_the_graph_backend_measures_and_says_that_it_knows_no_more(compiling: pytest.Pytester) -> None:
    result = run(compiling, SINE + "assert_peak(two, torch.ones(8, 8)) < '1KiB'")
    result.assert_outcomes(passed=1)
    result = run(compiling, SINE + "assert_peak(two, torch.ones(8, 8)) < 300")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *the peak is * B, expected less than 300 B (pass inductor, backend graph)",
            "E *measured peak * outside of programs; unexplained: 0 B",
            "E *no program of Inductor ran, so nothing is known of what was held",
        ]
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("found > 3", "expected assert_peak(fn, x) <= ..., < ... or == ..., got > 3"),
        ("found != '1KiB'", "expected assert_peak(fn, x) <= ..., < ... or == ..., got != '1KiB'"),
        ("assert found", "expected assert_peak(fn, x) <= *, got assert_peak(fn, x) alone"),
        ("found <= '2 megabytes'", "assert_peak: expected bytes, as 4096 or '4KiB' *, got '2 megabytes'"),
        ("assert_peak(keep)", "*keep*x*"),
    ],
)
def test_what_cannot_be_meant_is_an_error(compiling: pytest.Pytester, text: str, error: str) -> None:
    result = run(compiling, f"found = assert_peak(keep, *inputs(keep))\n{text}\nassert False, 'no error'")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *TypeError: {error}".replace("[", "[[]")])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pass", "*assert_peak was requested and never used, so nothing was asserted: write assert_peak(*"),
        (
            "assert_peak(keep, *inputs(keep))",
            "*assert_peak(...) was called, and what it returned was compared*",
        ),
    ],
)
def test_a_test_that_compares_nothing_fails(compiling: pytest.Pytester, body: str, message: str) -> None:
    result = run(compiling, body)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([message])


def test_the_limit_of_the_marker_holds_too(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        test_it="""
        import pytest
        from programs import *

        @pytest.mark.reinplace(max_peak_bytes=0)
        def test_it(assert_peak):
            assert assert_peak(keep, *inputs(keep)) <= "1MiB"
        """
    )
    result = compiling.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["* B at the peak; the limit is max_peak_bytes=0 (*"])


def test_what_is_written_is_written_once(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        test_it="""
        import pytest
        import torch

        @pytest.mark.reinplace(tolerance=0)
        def test_it(assert_peak):
            x = torch.ones(4)
            assert assert_peak(lambda y: y.add_(1), x) <= "1MiB"
            assert x.tolist() == [2] * 4
        """
    )
    compiling.runpytest_inprocess().assert_outcomes(passed=1)
