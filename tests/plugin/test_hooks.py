"""The hooks that a conftest.py or a plugin may implement, and what is said of a broken one."""

from __future__ import annotations

import json
import platform
from typing import Any

import pytest

from pytest_reinplace.reports.document import schema
from pytest_reinplace.session import device

from .documents import graph, outcome

# Records made by hand, as a worker would hand them on: nothing is compiled.
TEST = f"""
import json

def test_it(request):
    request.node.user_properties.append(("reinplace", json.dumps({[graph(outcome())]!r})))
"""


def run(project: pytest.Pytester, conftest: str, *args: str, exitcode: int = 0) -> pytest.RunResult:
    project.makepyfile(test_it=TEST)
    project.makeconftest(f"import pytest\n{conftest}")
    result = project.runpytest_inprocess("--reinplace-json=out.json", *args)
    assert result.ret == exitcode, result.outlines
    result.assert_outcomes(passed=1)
    return result


def written(project: pytest.Pytester) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.path / "out.json").read_text())
    return found


DEVICE = """
def pytest_reinplace_device_info(config):
    return {"name": "ACME X-1 (rev. 2)", "memory": 80, "root": config.rootpath.name}
"""


def test_the_report_says_what_the_tests_ran_on(compiling: pytest.Pytester) -> None:
    run(compiling, DEVICE)
    assert written(compiling)["device"] == {
        "name": "ACME X-1 (rev. 2)",
        "slug": "acme-x-1-rev.-2",
        "memory": 80,
        "root": compiling.path.name,
    }


def test_with_none_of_its_own_the_report_has_ours(
    compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook that knows nothing leaves the question to the next."""
    known = {
        "is_available": lambda: False,
        "get_device_name": lambda: "NVIDIA H200",
        "get_device_capability": lambda: (9, 0),
    }
    cuda = type("cuda", (), known)
    monkeypatch.setitem(device.sys.modules, "torch", type("torch", (), {"cuda": cuda}))
    cpu = {"type": "cpu", "name": f"cpu {platform.machine()}", "slug": f"cpu-{platform.machine()}"}
    assert device.default() == cpu
    cuda.is_available = lambda: True
    run(compiling, "def pytest_reinplace_device_info(): return None")
    assert written(compiling)["device"] == {"type": "cuda", "name": "NVIDIA H200", "slug": "cuda-sm90-h200"}


def test_where_torch_was_not_imported_nothing_is_known(
    compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(device.sys.modules, "torch", raising=False)
    assert device.default() is None
    run(compiling, "")
    assert written(compiling)["device"] is None
    assert "torch" not in device.sys.modules


def test_the_workers_know_better_than_their_controller(compiling: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    conftest = """
def pytest_reinplace_device_info(config):
    worker = getattr(config, "workerinput", {"workerid": "none"})["workerid"]
    return {"name": worker} if worker != "gw0" else None

def pytest_reinplace_update_json(config, report):
    assert not hasattr(config, "workerinput")
    report["updates"] = report.get("updates", 0) + 1
"""
    run(compiling, conftest, "-n2")
    # gw0 leaves it to ours, which knows nothing without torch; gw1 comes before the controller.
    assert (written(compiling)["device"], written(compiling)["updates"]) == (
        {"name": "gw1", "slug": "gw1"},
        1,
    )


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("cpu x86_64", "cpu-x86_64"),
        ("../../etc/passwd", "etc-passwd"),
        (f"{'a' * 63} b", "a" * 63),
        ("漢 7", "7"),
    ],
)
def test_a_slug_is_part_of_a_file_name(name: str, slug: str) -> None:
    assert device.slug(name) == slug


def test_a_report_is_changed_before_it_is_written(compiling: pytest.Pytester) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    conftest = """
def pytest_reinplace_update_json(config, report):
    report["commit"] = {"id": "a" * 8}
    del report["tests"]["test_it.py::test_it"]["graphs"][0]["outcomes"][0]["source"]
    report["tests"]["test_it.py::test_it"]["graphs"][0]["outcomes"][0]["source"] = "elsewhere.py:1"
"""
    run(compiling, conftest, "--reinplace-markdown=out.md")
    assert written(compiling)["commit"] == {"id": "aaaaaaaa"}
    assert list(written(compiling)["tests"]) == ["test_it.py::test_it"]
    assert '"source": "elsewhere.py:1"' in (compiling.path / "out.json").read_text()
    assert "elsewhere" not in (compiling.path / "out.md").read_text(), "the other reports are ours alone"
    jsonschema.validate(written(compiling), schema())


def test_without_the_file_no_hook_is_asked(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it=TEST)
    compiling.makeconftest(
        "def pytest_reinplace_device_info(): raise SystemExit\n"
        "def pytest_reinplace_update_json(): raise SystemExit\n"
    )
    compiling.runpytest_inprocess("--reinplace-report", "--reinplace-markdown=o.md").assert_outcomes(passed=1)


INFO, UPDATE = "pytest_reinplace_device_info", "pytest_reinplace_update_json"


@pytest.mark.parametrize(
    ("hook", "body", "message"),
    [
        (INFO, "return {}['no']", "raised KeyError: 'no' (at conftest.py:4)"),
        (INFO, "return 3", ": expected a mapping or None, got int 3"),
        (INFO, "return {}", ": expected 'name' to be a text with a letter or a digit, got NoneType None"),
        (
            INFO,
            "return {'name': '漢'}",
            ": expected 'name' to be a text with a letter or a digit, got str '漢'",
        ),
        (INFO, "return {'name': 'a', 'x': {1}}", ": expected only values that JSON has: *set is not JSON*"),
        (
            UPDATE,
            "report.clear(); int('x\\x1b')",
            "raised ValueError: invalid literal for int*(at conftest.py:4)",
        ),
        (
            UPDATE,
            "return {**report, 'x': 1}",
            ": expected None, got dict {*; change the report in place*",
        ),
        (UPDATE, "report['x'] = float('nan')", ": expected only values that JSON has: Out of range float*"),
        (UPDATE, "report['x'] = print", ": expected only values that JSON has: *builtin*is not JSON*"),
        (
            UPDATE,
            "del report['tests']",
            ": cannot be read back: the report: expected a JSON report*",
        ),
        (
            UPDATE,
            "report['schema'] = 99",
            ": cannot be read back: the report: written by a newer*",
        ),
        (
            UPDATE,
            "report['tests']['test_it.py::test_it']['outcome'] = 'odd'",
            ": cannot be read back: *expected 'outcome' to be one of passed, failed, skipped, got*",
        ),
    ],
)
def test_a_broken_hook_is_an_error_that_names_its_plugin(
    compiling: pytest.Pytester, hook: str, body: str, message: str
) -> None:
    arguments = "config, report" if hook == UPDATE else "config"
    conftest = f"\ndef {hook}({arguments}):\n    {body}\n"
    result = run(compiling, conftest, exitcode=pytest.ExitCode.INTERNAL_ERROR)
    between = "" if message[0] == ":" else " "
    result.stdout.fnmatch_lines(
        [f"ERROR: --reinplace-json: hook {hook} of plugin conftest.py{between}{message}"]
    )
    assert "\x1b" not in "".join(result.outlines)
    found = written(compiling)
    assert found["total"]["cloned"] == 1, "what is known is written all the same"
    assert "x" not in found
    assert found["schema"] == 1


def test_where_several_may_be_meant_all_are_named(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(other=f"def {UPDATE}(report):\n    report['x'] = 1j\n")
    result = run(
        compiling, f"def {UPDATE}(report): pass", "-p", "other", exitcode=pytest.ExitCode.INTERNAL_ERROR
    )
    result.stdout.fnmatch_lines([f"*hook {UPDATE} of one of the plugins conftest.py, other: expected *"])


def test_a_hook_with_an_unknown_argument_is_refused(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it=TEST)
    compiling.makeconftest(f"def {UPDATE}(session): pass")
    result = compiling.runpytest_inprocess("--reinplace-json=out.json")
    assert result.ret != 0
    text = "\n".join([*result.outlines, *result.errlines])
    assert f"hook '{UPDATE}'" in text
    assert "Argument(s) {'session'} are declared in the hookimpl but can not be found in the hookspec" in text
