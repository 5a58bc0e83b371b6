"""Each project is copied and run as its users would; what is red, and what it says first, must be as written.

``expected.yaml`` of a project holds

* ``why``: what is wrong with it, or why it looks so, in a sentence;
* ``run``: arguments of pytest, or ``command``: those of ``pytest-reinplace`` instead;
* ``red``: each test that fails or errs, with the first line of its message (``fnmatch``); all others pass;
* ``skipped`` and ``xfailed``: those that do that instead;
* ``exit``: the exit code, by default 1 where something is red, else 0;
* ``says``: further lines that are printed, in this order.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

import pytest_reinplace.entry.run
import pytest_reinplace.measure.sides  # noqa: F401  (pytester forgets what a run inside it imports)
from pytest_reinplace.command.main import main

from ..plugin.conftest import compiling

__all__ = ["compiling"]

_HERE = Path(__file__).parent
_KEYS = {"why", "run", "command", "red", "skipped", "xfailed", "exit", "says"}
WRONG, RIGHT = (
    [path.parent for path in sorted(_HERE.glob(f"{kind}/*/expected.yaml"))] for kind in ("wrong", "right")
)


def expected_of(folder: Path) -> dict[str, Any]:
    found = yaml.safe_load((folder / "expected.yaml").read_text())
    assert found.keys() <= _KEYS and found["why"].endswith(".")
    return {"run": [], "red": {}, "skipped": [], "xfailed": [], "says": [], **found}


def first_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return text.strip().removeprefix("Failed: ").splitlines()[0]


def told(result: pytest.RunResult) -> Iterator[tuple[str, str, str]]:
    """Yield (id, outcome, first line) of each test; one that fails twice is told twice."""
    for report in result.reprec.getreports("pytest_collectreport pytest_runtest_logreport"):
        if report.failed:
            yield report.nodeid, "red", first_line(report)
        elif report.skipped:
            yield report.nodeid, "xfailed" if hasattr(report, "wasxfail") else "skipped", ""
        elif getattr(report, "when", "") == "call":
            yield report.nodeid, "passed", ""


def judge(result: pytest.RunResult, expected: dict[str, Any]) -> None:
    found = list(told(result)) if result.ret != pytest.ExitCode.USAGE_ERROR else []
    red = [(nodeid, line) for nodeid, outcome, line in found if outcome == "red"]
    lines = {nodeid: _line(line, expected["red"].get(nodeid, "")) for nodeid, line in red}
    assert lines == expected["red"]
    assert len(red) == len(lines)
    for outcome in ("skipped", "xfailed"):
        assert {nodeid for nodeid, one, _ in found if one == outcome} == set(expected[outcome])


def _line(line: str, pattern: str) -> str:
    """Return the pattern where it fits, so that a line that does not is shown beside it."""
    return pattern if fnmatchcase(line, pattern) else line


@pytest.mark.parametrize("folder", [*WRONG, *RIGHT], ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_project(
    folder: Path,
    compiling: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    expected = expected_of(folder)
    (compiling.path / "programs.py").unlink()
    (compiling.path / "tox.ini").write_text("[pytest]\nreinplace_backend = graph\n")
    for path in folder.iterdir():
        shutil.copy(path, compiling.path)
    (compiling.path / "expected.yaml").unlink()
    if "command" in expected:
        monkeypatch.chdir(compiling.path)
        try:
            code = main(expected["command"])
        except SystemExit as error:  # argparse's
            code = error.code
        out = "".join(capfd.readouterr())
    else:
        result = compiling.runpytest_inprocess("-pno:cacheprovider", *expected["run"])
        judge(result, expected)
        code, out = result.ret, "\n".join([*result.outlines, *result.errlines])
    pytest.LineMatcher(out.splitlines()).fnmatch_lines(expected["says"])
    assert code == expected.get("exit", int(bool(expected["red"])))
    assert bool(code) == (folder in WRONG)
