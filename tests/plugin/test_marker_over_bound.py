"""``max_peak_over_bound=`` of the marker."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("unoptimized")

HEAD = """
import pytest, torch

def split(x, w):  # the row of sums is held beside what the product needs
    t = x * w + 1
    return t.sum(1), (t @ w)

def product(x, w):
    return (x @ w).relu() @ w

def given(x, w):
    return x.add_(w)

def inputs():
    return torch.ones(8, 8), torch.ones(8, 8)
"""


def run(project: pytest.Pytester, marker: str, body: str, fixture: str = "reinplace") -> pytest.RunResult:
    project.makepyfile(
        test_it=f"{HEAD}\n@pytest.mark.reinplace({marker})\ndef test_it({fixture}):\n    {body}\n"
    )
    return project.runpytest_inprocess("--strict-markers", "--reinplace-backend=inductor")


def test_within_the_ratio_a_test_passes(compiling: pytest.Pytester) -> None:
    body = "assert reinplace.run(split, *inputs()).peak_bytes == 544; reinplace.run(product, *inputs())"
    run(compiling, "max_peak_over_bound=1.0625", body).assert_outcomes(passed=1)
    run(compiling, "max_peak_over_bound=1", "reinplace.run(given, *inputs())").assert_outcomes(passed=1)


def test_beyond_it_the_failure_says_what_needs_the_bound_and_what_is_held(compiling: pytest.Pytester) -> None:
    body = "reinplace.run(product, *inputs()); reinplace.run(split, *inputs())"
    result = run(compiling, "max_peak_over_bound=1.06", body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "the peak, 544 B, is 1.062 times its lower bound, 512 B; *max_peak_over_bound=1.06 (pass *",
            "  measured peak 544 B = 544 B that [[]fw *] holds; unexplained: 0 B",
            "  lower bound 512 B by [[]fw *]: extern_kernels.mm(*",
            "  at the peak [[]fw *] runs: *",
        ],
        consecutive=True,
    )


def test_the_fixture_of_peaks_is_held_to_it_too(compiling: pytest.Pytester) -> None:
    body = "assert assert_peak(split, *inputs()) <= '1KiB'"
    result = run(compiling, "max_peak_over_bound=1", body, "assert_peak")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the peak, 544 B, is 1.062 times its lower bound, 512 B; *"])


@pytest.mark.parametrize(
    ("marker", "body", "message"),
    [
        (
            "max_peak_over_bound=2, backend='graph'",
            "reinplace.run(product, *inputs())",
            "there is no lower bound, since no program of Inductor ran: backend graph lowers nothing; mark *",
        ),
        (
            "max_peak_over_bound=2",
            "torch.compile(product)(*inputs())",
            "nothing was measured: max_peak_over_bound limits the calls of reinplace.run(fn, *",
        ),
        (
            "max_peak_over_bound=2",
            "reinplace.run(lambda x: x, torch.ones(3))",
            "there is no lower bound of a measured call: no program of Inductor ran in it *",
        ),
        (
            "max_peak_over_bound=2",
            "torch._inductor.config.patch(cpp_wrapper=True)(reinplace.run)(product, *inputs())",
            "the lower bound of [[]fw *] is not known: *cpp_wrapper*",
        ),
    ],
)
def test_a_bound_that_is_not_known_fails(
    compiling: pytest.Pytester, marker: str, body: str, message: str
) -> None:
    result = run(compiling, marker, body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])


@pytest.mark.parametrize("value", ["0.99", "-1", "True", "'1.1'", "float('nan')", "float('inf')", "[1]"])
def test_a_ratio_below_one_is_a_wrong_marker(compiling: pytest.Pytester, value: str) -> None:
    result = run(compiling, f"max_peak_over_bound={value}", "pass")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*marker reinplace: expected max_peak_over_bound to be a finite number of at least 1, got *"]
    )
