"""The marker @pytest.mark.reinplace."""

from __future__ import annotations

import pytest


def run(project: pytest.Pytester, marker: str, body: str, *args: str) -> pytest.RunResult:
    project.makepyfile(
        test_it=f"import pytest, torch\nfrom programs import *\n\n@pytest.mark.reinplace({marker})\n{body}\n"
    )
    return project.runpytest_inprocess("--strict-markers", *args)


KEEP = "def test_it():\n    torch.compile(keep)(*inputs(keep))\n"


RUN = "def test_it(reinplace):\n    reinplace.run(call_op, torch.zeros(1000), torch.ones(1000))\n"


@pytest.mark.parametrize("marker", ["max_peak_bytes=4100", "max_peak_bytes=4100, max_clones=0"])
def test_below_the_peak_a_test_passes(compiling: pytest.Pytester, marker: str) -> None:
    run(compiling, marker, RUN).assert_outcomes(passed=1)


def test_above_the_peak_it_fails_with_all_that_is_exceeded(compiling: pytest.Pytester) -> None:
    lines = "reinplace.run(pure, torch.ones(8))", "reinplace.run(keep, torch.ones(1000))"
    body = "def test_it(reinplace):\n    " + "\n    ".join(lines)
    result = run(compiling, "max_peak_bytes=4000, max_clones=0", body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "1 clone; the limit is max_clones=0 (pass inductor, backend graph)",
            "7.* KiB (80* B) at the peak; the limit is max_peak_bytes=4000 (pass inductor, backend graph)",
        ]
    )


def test_a_peak_that_nothing_measured_fails(compiling: pytest.Pytester) -> None:
    result = run(compiling, "max_peak_bytes=4000", KEEP)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["nothing was measured: max_peak_bytes limits the calls of reinplace.run*"])


@pytest.mark.parametrize(
    "marker",
    ["max_clones=1", "max_clone_bytes=32", "max_clone_bytes='1KiB'", "max_clones=1, max_clone_bytes=40"],
)
def test_within_the_limits_a_test_passes(compiling: pytest.Pytester, marker: str) -> None:
    run(compiling, marker, KEEP).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        ("max_clones=0", "1 clone; the limit is max_clones=0 (pass inductor, backend graph)"),
        ("max_clone_bytes=31", "32 B cloned; the limit is max_clone_bytes=31 (pass inductor, backend graph)"),
    ],
)
def test_beyond_a_limit_it_fails_and_explains(compiling: pytest.Pytester, marker: str, text: str) -> None:
    result = run(compiling, marker, KEEP)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([text, "  aten::index_put.self at programs.py:*: 32 B, *"])


def test_a_limit_on_nothing_compiled_fails(compiling: pytest.Pytester) -> None:
    result = run(compiling, "max_clones=0", "def test_it():\n    pass")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no graph was compiled, so the pass was not exercised:*"])


def test_a_failure_of_the_test_itself_is_what_is_shown(compiling: pytest.Pytester) -> None:
    result = run(compiling, "max_clones=0", "def test_it():\n    assert 1 == 2")
    result.stdout.fnmatch_lines(["E *assert 1 == 2"])
    result.stdout.no_fnmatch_line("*exercised*")


def test_pass_and_backend_beat_the_options(compiling: pytest.Pytester) -> None:
    body = """
class TestIt:
    @pytest.mark.reinplace(pass_="exact")
    def test_it(self, reinplace):
        torch.compile(update)(*inputs(update))
        assert [(g.pass_name, g.backend) for g in reinplace.graphs] == [("exact", "graph")]
"""
    result = run(
        compiling,
        "pass_='inductor', backend='graph'",
        body,
        "--reinplace-backend=inductor",
        "--reinplace-pass=a:b",
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR  # the option is looked at all the same
    run(compiling, "pass_='inductor', backend='graph'", body, "--reinplace-backend=inductor").assert_outcomes(
        passed=1
    )


def test_a_pass_that_cannot_be_imported_is_an_error_of_the_test(compiling: pytest.Pytester) -> None:
    result = run(compiling, "pass_='no.such:f'", KEEP)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["test_it.py::test_it: marker reinplace: pass_: pass 'no.such:f': module 'no.such' cannot be *"]
    )
    result.stdout.no_fnmatch_line("*UsageError*")


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        (
            "max_clone=1",
            "has no argument 'max_clone'; the valid ones are device, backend, pass_, max_clones, *",
        ),
        ("'exact'", "takes keyword arguments only, got ('exact',)"),
        ("max_clones=-1", "expected max_clones to be an int of at least 0, got -1"),
        ("max_clones=True", "expected max_clones to be an int of at least 0, got True"),
        ("max_clone_bytes='1MB'", "max_clone_bytes: expected bytes, as 4096 or '4KiB' (units: *), got '1MB'"),
        ("max_clone_bytes=-1", "max_clone_bytes: expected bytes, as 4096 or '4KiB' (units: *), got -1"),
        ("max_peak_bytes=1.5", "max_peak_bytes: expected bytes, as 4096 or '4KiB' (units: *), got 1.5"),
        ("max_peak_bytes=True", "max_peak_bytes: expected bytes, as 4096 or '4KiB' (units: *), got True"),
        ("tolerance=-1", "expected tolerance to be a finite number of at least 0, or a mapping *, got -1"),
        ("tolerance=True", "expected tolerance to be a finite number of at least 0, or a *, got True"),
        ("tolerance='1e-5'", "expected tolerance to be a finite number of at least 0, or a *, got '1e-5'"),
        ("tolerance=float('nan')", "expected tolerance to be a finite number of at least 0, or a *, got nan"),
        ("tolerance=float('inf')", "expected tolerance to be a finite number of at least 0, or a *, got inf"),
        ("tolerance={'rtoll': 1}", "*a mapping from rtol and atol to such numbers, got {'rtoll': 1}"),
        ("tolerance={'atol': None}", "*a mapping from rtol and atol to such numbers, got {'atol': None}"),
        ("tolerance={}", "*a mapping from rtol and atol to such numbers, got {}"),
        ("tolerances=1", "has no argument 'tolerances'; the valid ones are *, tolerance"),
        ("device='tpu'", "device: expected one of cpu, cuda, got 'tpu'"),
        ("device=0", "device: expected one of cpu, cuda, got '0'"),
        ("backend='eager'", "backend: expected one of inductor, graph, got 'eager'"),
        (
            "pass_='nosuch'",
            "pass_: expected one of inductor, exact, post_grad or package.module:attribute, got 'nosuch'",
        ),
    ],
)
def test_a_wrong_marker_fails_its_test_and_no_other(
    compiling: pytest.Pytester, marker: str, message: str
) -> None:
    result = run(compiling, marker, "def test_it(): raise SystemExit('ran')\n\ndef test_other(): pass")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines([f"test_it.py::test_it: marker reinplace: {message}"])


def test_it_is_listed(compiling: pytest.Pytester) -> None:
    result = compiling.runpytest_inprocess("--markers")
    result.stdout.fnmatch_lines(
        ["@pytest.mark.reinplace(*, device=None, backend=None, pass_=None, max_clones=None, *"]
    )
