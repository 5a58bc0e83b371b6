"""--reinplace-memory: what Inductor's programs hold, in the JSON; and the limit that needs it."""

from __future__ import annotations

import json

import pytest

from pytest_reinplace.record import stored
from pytest_reinplace.reports.document import schema

from .test_marker_over_bound import HEAD
from .test_report_schema import closed

pytestmark = pytest.mark.usefixtures("unoptimized")
TESTS = """
def test_run(reinplace):
    reinplace.run({name}, *inputs())

def test_peak(assert_peak):
    assert assert_peak(given, *inputs()) <= "1KiB"
    assert assert_peak(product, *inputs()) <= "1KiB"

def test_unmeasured(reinplace):
    torch.compile(product)(*inputs())
"""


def run(project: pytest.Pytester, *arguments: str, name: str = "split") -> pytest.RunResult:
    project.makepyfile(test_it=HEAD + TESTS.format(name=name))
    return project.runpytest_inprocess("--reinplace-backend=inductor", *arguments)


def test_the_json_has_the_programs_of_each_measured_call(compiling: pytest.Pytester) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    run(compiling, "--reinplace-memory", "--reinplace-json=out.json").assert_outcomes(passed=3)
    document = json.loads((compiling.path / "out.json").read_text())
    jsonschema.validate(document, closed(schema()))
    tests = document["tests"]
    [call] = tests["test_it.py::test_run"]["memory"]
    [program] = call["programs"]
    assert (call["measured_peak"], call["lower_bound"]) == (544, 512)
    assert program.pop("graph").startswith("[fw ")
    assert program.pop("needed_by").startswith("extern_kernels.mm(")
    assert program == {"problem": "", "before": 0, "peak": 544, "static_peak": 544, "static_bound": 512}
    assert (call["outside"], call["unexplained"]) == (0, 0)
    assert [one["measured_peak"] for one in tests["test_it.py::test_peak"]["memory"]] == [0, 512]
    assert "memory" not in tests["test_it.py::test_unmeasured"]
    read = stored.read(compiling.path / "out.json").tests
    assert [test.figures.get("static_peak") for test in read.values()] == [512, 544, None]


def test_without_it_nothing_is_recorded_and_the_graph_backend_has_nothing(compiling: pytest.Pytester) -> None:
    for arguments in ([], ["--reinplace-memory", "--reinplace-backend=graph"]):
        run(compiling, "--reinplace-json=out.json", *arguments).assert_outcomes(passed=3)
        tests = json.loads((compiling.path / "out.json").read_text())["tests"]
        assert "memory" not in tests["test_it.py::test_run"]


def test_the_limit_records_it_by_itself_and_fails_what_holds_more(compiling: pytest.Pytester) -> None:
    run(compiling, "--reinplace-memory", "--reinplace-json=old.json", "-n1", name="product")
    compare = "--reinplace-compare=old.json", "--reinplace-fail-on=static_peak:6%"
    run(compiling, *compare, name="product").assert_outcomes(passed=3)
    result = run(compiling, *compare)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*static peak 512 B → 544 B, +32 B, +6.2 %; allowed is static_peak:6%*"])


def test_the_limit_wants_an_earlier_report(compiling: pytest.Pytester) -> None:
    result = run(compiling, "--reinplace-measure", "--reinplace-fail-on=static_peak:6%")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *: expected --reinplace-compare=PATH with static_peak, got none"])
