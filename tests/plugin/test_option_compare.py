"""--reinplace-compare and --reinplace-fail-on."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from pytest_reinplace.compare.limit import limit

from .test_options import settings

# What a test compiled is handed on by hand: a gate needs no compiler.
TESTS = """
import json, pytest

GRAPHS = json.loads({graphs!r})

@pytest.mark.parametrize("name", {names!r})
def test_it(request, name):
    if name in GRAPHS:
        request.node.user_properties.append(("reinplace", json.dumps(GRAPHS[name])))
    {body}
"""


# Hypothesis would be imported, with its assertions rewritten, in each of these runs: most of their time.
_PLAIN = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "benchmark", "anyio")]


def outcomes(*sizes: int, label: str = "aten::index_put.self") -> list[dict[str, object]]:
    """Return the graphs of a test that clones these bytes."""
    clones = [
        {
            "label": label,
            "op": "aten::index_put",
            "arg": "self",
            "node": "index_put",
            "reinplaced": False,
            "nbytes": size,
            "reason": "still-read",
            "blockers": [],
            "source": "m.py:3",
        }
        for size in sizes
    ]
    return [{"graph": "[fw 0/0]", "outcomes": clones, "suspicious": [], "problem": ""}]


def project(
    pytester: pytest.Pytester,
    names: Sequence[str] = "ab",
    body: str = "pass",
    label: str = "aten::index_put.self",
    **sizes: Sequence[int],
) -> None:
    graphs = json.dumps({name: outcomes(*size, label=label) for name, size in sizes.items()})
    pytester.makepyfile(test_it=TESTS.format(graphs=graphs, names=list(names), body=body))


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*_PLAIN, *arguments)


@pytest.fixture
def old(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a project with ``old.json``, in which ``a`` clones 100 bytes and ``b`` nothing."""
    project(pytester, a=[100], b=[])
    assert run(pytester, "--reinplace-json=old.json").ret == 0
    return pytester


def test_a_run_that_did_not_change_passes(old: pytest.Pytester) -> None:
    result = run(old, "--reinplace-compare=old.json")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "*= reinplace compared =*",
            "old.json → this run",
            "2 tests in both reports, 2 unchanged",
            "within the limits clones:0, new_clones:0, clone_bytes:0, peak_bytes:0 (not compared)",
        ]
    )
    result.stdout.no_fnmatch_line("*= reinplace =*")


def test_a_clone_more_fails_the_run_in_a_section_of_its_own(old: pytest.Pytester) -> None:
    project(old, a=[100, 1], b=[])
    result = run(old, "--reinplace-compare=old.json")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*= reinplace compared =*",
            "over the limit:",
            "  test_it.py::test_it[[]a[]]: clones 1 → 2, +1, +100.0 %; allowed is clones:0",
            "  test_it.py::test_it[[]a[]]: clone bytes 100 B → 101 B, +1 B, +1.0 %; allowed is clone_bytes:0",
            "1 test over a limit (clones:0 exceeded, new_clones:0 exceeded, clone_bytes:0 exceeded, "
            "peak_bytes:0 not compared)",
        ]
    )


def test_a_clone_that_moved_fails_the_run_and_is_an_annotation(
    old: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(old, label="k.v", a=[100], b=[])
    text = (
        "the clone moved from aten::index_put.self at m.py:3 to k.v at m.py:3: 100 B, the old value is still "
        "read after this write"
    )
    result = run(old, "--reinplace-compare=old.json")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"  test_it.py::test_it[a]: {text}; allowed is new_clones:0" in result.outlines
    assert not any(line.startswith("::") for line in result.outlines)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(old.path))
    result = run(old, "--reinplace-compare=old.json")
    (found,) = [line for line in result.outlines if line.startswith("::")]
    title = "title=k.v is a new clone%2C 100 B"
    assert found == f"::error file=m.py,line=3,{title}::{text}; in test_it.py::test_it[a]"
    result = run(old, "--reinplace-compare=old.json", "--reinplace-fail-on=clones:0")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["1 moved clone:", "within the limits clones:0", "::notice *"])


def test_given_limits_replace_the_exact_ones(old: pytest.Pytester) -> None:
    project(old, a=[50, 51], b=[])
    assert run(old, "--reinplace-compare=old.json", "--reinplace-fail-on=clone_bytes:1%").ret == 0
    both = ("--reinplace-fail-on=clone_bytes:1%", "--reinplace-fail-on", "clones:0")
    result = run(old, "--reinplace-compare=old.json", *both)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["1 test over a limit (clone_bytes:1% held, clones:0 exceeded)"])


def test_a_better_run_passes_and_says_to_update_the_baseline(old: pytest.Pytester) -> None:
    project(old, a=[10], b=[])
    result = run(old, "--reinplace-compare=old.json")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["1 test improved; update the baseline:", "*a*"])


def test_a_run_that_exercises_the_pass_no_more_fails(old: pytest.Pytester) -> None:
    project(old, a=[], b=[])
    result = run(old, "--reinplace-compare=old.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["over the limit:", "  test_it.py::test_it[[]a[]]: 1 candidate before, none now*"]
    )


def test_the_run_may_write_to_the_report_that_it_is_held_against(old: pytest.Pytester) -> None:
    project(old, a=[100, 1], b=[])
    arguments = ("--reinplace-compare=old.json", "--reinplace-json=old.json")
    assert run(old, *arguments).ret == 1
    assert run(old, *arguments).ret == 0


def test_a_run_that_compares_nothing_fails(old: pytest.Pytester) -> None:
    project(old)
    result = run(old, "--reinplace-compare=old.json")
    result.assert_outcomes(passed=2)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "over the limit:",
            "  no test is in both reports, so nothing was compared",
            "the comparison is over a limit (*",
        ]
    )


def test_a_part_of_the_tests_is_held_against_its_part(old: pytest.Pytester) -> None:
    result = run(old, "--reinplace-compare=old.json", "test_it.py::test_it[a]")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["1 test in both reports, 1 unchanged", "1 removed test, not compared:"])


def test_a_test_that_is_gone_is_over_a_limit_of_its_own(old: pytest.Pytester) -> None:
    both = "--reinplace-compare=old.json", "--reinplace-fail-on=removed_tests:0"
    assert run(old, *both, "test_it.py::test_it[a]").ret == 0  # the other one had no candidate
    result = run(old, *both, "test_it.py::test_it[b]")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "over the limit:",
            "  1 removed test with candidates: test_it.py::test_it[[]a[]]; allowed is removed_tests:0. *",
        ]
    )


def test_a_failing_run_stays_one(old: pytest.Pytester) -> None:
    project(old, a=[100], b=[], body="assert name == 'a'")
    result = run(old, "--reinplace-compare=old.json")
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*b*: passed before, failed now", "within the limits *"])


def test_an_interrupted_run_stays_one(old: pytest.Pytester) -> None:
    project(old, a=[100, 1], b=[], body="if name == 'b': pytest.exit('enough')")
    result = run(old, "--reinplace-compare=old.json")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["1 test over a limit *"])


def test_collecting_only_compares_nothing(old: pytest.Pytester) -> None:
    result = run(old, "--reinplace-compare=old.json", "--collect-only")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*reinplace compared*")


def test_without_it_nothing_is_compared(old: pytest.Pytester) -> None:
    project(old, a=[100, 1], b=[])
    result = run(old)
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*reinplace compared*")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 1, "tests": {', "expected a whole JSON report of --reinplace-json, got no valid JSON*"),
        ('{"schema": 99, "tests": {}}', "written by a newer pytest-reinplace: its schema is 99*"),
        ("[]", "expected a JSON report of --reinplace-json*"),
    ],
)
def test_a_report_that_cannot_be_used_stops_before_the_first_test(
    pytester: pytest.Pytester, text: str, message: str
) -> None:
    pytester.makepyfile("def test_it(): raise SystemExit('ran')")
    (pytester.path / "bad.json").write_text(text)
    result = run(pytester, "--reinplace-compare=bad.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --reinplace-compare: *bad.json: {message}"])
    result.stdout.no_fnmatch_line("*ran*")


def test_names_with_control_codes_are_escaped(pytester: pytest.Pytester) -> None:
    project(pytester, a=[1])
    run(pytester, "--reinplace-json=old.json")
    path = pytester.path / "old.json"
    data = json.loads(path.read_text())
    data["tests"]["gone\x1b[2J\n"] = next(iter(data["tests"].values()))
    path.write_text(json.dumps(data))
    result = run(pytester, "--reinplace-compare=old.json")
    assert r"  gone\x1b[2J\n" in result.outlines


def test_a_limit_without_a_report_is_refused(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--reinplace-fail-on=clones:0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --reinplace-fail-on: expected --reinplace-compare=PATH or --reinplace-measure with it, "
            "got none"
        ]
    )


@pytest.mark.parametrize("metric", ["new_clones", "removed_tests"])
def test_what_needs_an_earlier_report_is_refused_without(pytester: pytest.Pytester, metric: str) -> None:
    result = run(pytester, "--reinplace-measure", f"--reinplace-fail-on={metric}:0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: --reinplace-fail-on: expected --reinplace-compare=PATH with {metric}, got none"]
    )


def test_limits_are_set_in_three_places(pytester: pytest.Pytester) -> None:
    ini = "reinplace_fail_on = clones:1\n    peak_bytes:1%"
    assert settings(pytester, ini=ini).fail_on == (limit("clones:1"), limit("peak_bytes:1%"))
    environment = {"REINPLACE_FAIL_ON": "clones:2 runtime:5%", "REINPLACE_COMPARE": "a.json"}
    found = settings(pytester, ini=ini, environment=environment)
    assert found.fail_on == (limit("clones:2"), limit("runtime:5%"))
    assert found.compare == pytester.path / "a.json"
    found = settings(pytester, "--reinplace-fail-on=clones:3", ini=ini, environment=environment)
    assert found.fail_on == (limit("clones:3"),)


@pytest.mark.parametrize("text", ["clone:0", "clones:x", "runtime:5"])
def test_a_wrong_limit_is_refused(pytester: pytest.Pytester, text: str) -> None:
    with pytest.raises(pytest.UsageError, match="^ini option reinplace_fail_on: (no metric|expected)"):
        settings(pytester, ini=f"reinplace_fail_on = {text}")
    with pytest.raises(pytest.UsageError, match="^--reinplace-fail-on: (no metric|expected)"):
        settings(pytester, f"--reinplace-fail-on={text}")


def test_only_the_controller_of_workers_decides(old: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    arguments = ("-n", "2", *_PLAIN)
    ini = "[pytest]\nreinplace_compare = old.json\nreinplace_fail_on = clones:0 clone_bytes:1KiB\n"
    old.makeini(ini)
    result = old.runpytest_subprocess(*arguments)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["2 tests in both reports, 2 unchanged", "within the limits *"])
    project(old, a=[100, 1], b=[])
    result = old.runpytest_subprocess(*arguments)
    result.assert_outcomes(passed=2)
    assert result.ret == 1
    assert sum("= reinplace compared =" in line for line in result.outlines) == 1
    result.stdout.fnmatch_lines(["1 test over a limit (clones:0 exceeded, clone_bytes:1KiB held)"])


def test_tests_that_compile_are_captured_for_it(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        test_it="""
        import torch
        from programs import *

        def test_it():
            torch.compile(keep)(*inputs(keep))
        """
    )
    compiling.runpytest_inprocess("--reinplace-json=old.json").assert_outcomes(passed=1)
    assert compiling.runpytest_inprocess("--reinplace-compare=old.json").ret == 0
    data = json.loads((compiling.path / "old.json").read_text())
    (outcome,) = data["tests"]["test_it.py::test_it"]["graphs"][0]["outcomes"]
    outcome["reinplaced"] = True
    (compiling.path / "old.json").write_text(json.dumps(data))
    result = compiling.runpytest_inprocess("--reinplace-compare=old.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*test_it.py::test_it: clones 0 → 1, +1; allowed is clones:0"])
