"""``pytest-reinplace show``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..plugin.documents import call, program
from .reports import clone, graph, in_place, main, test, write


@pytest.mark.parametrize("verbose", [[], ["-v"], ["-vv"]])
@pytest.mark.parametrize("columns", ["80", "140"])
def test_it_prints_what_the_run_printed(
    pytester: pytest.Pytester,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    verbose: list[str],
    columns: str,
) -> None:
    """The run's records are made by hand, as a worker would hand them on: nothing is compiled."""
    monkeypatch.setenv("COLUMNS", columns)
    graphs = [graph(clone(2048), in_place()), graph(clone(8), suspicious=["a.b"], problem="odd")]
    calls = [call(608, program(before=32, peak=600)), call(7, program(None))]
    pytester.makepyfile(
        f"""
        import json, pytest

        @pytest.mark.parametrize("name", ["a", "b"])
        def test_it(request, name):
            request.node.user_properties.append(("reinplace", json.dumps({graphs!r})))
        """
    )
    pytester.makeconftest(
        f"""
        import json, pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            report.reinplace_memory = json.dumps({calls!r})
            return report
        """
    )
    run = pytester.runpytest_inprocess(
        "--reinplace-report", "--reinplace-json=a.json", "-pno:hypothesispytest", *verbose
    )
    run.assert_outcomes(passed=2)
    begin = next(i for i, line in enumerate(run.outlines) if "= reinplace =" in line)
    end = next(i for i, line in enumerate(run.outlines) if "2 passed in" in line)
    assert "memory: 4 measured calls in 2 tests" in run.outlines[begin:end]
    capsys.readouterr()
    assert main(["show", *verbose, str(pytester.path / "a.json")]) == 0
    assert capsys.readouterr().out.rstrip() == "\n".join(run.outlines[begin:end]).rstrip()


def test_names_with_control_codes_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "t.py::a\x1b[2J\r\n\u202e\ud800"
    path = write(tmp_path / "a.json", {name: test(clone(label="x\x07", source="\x1b]0;m.py"))})
    assert main(["show", "-vv", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() for line in lines)
    assert any(line.startswith(r"  t.py::a\x1b[2J\r\n\u202e\ud800 ") for line in lines)
    assert any(r"  x\x07      " in line and r"  \x1b]0;m.py  " in line for line in lines)
    assert any(r"32 B: x\x07, node index_put at \x1b]0;m.py," in line for line in lines)


@pytest.mark.parametrize(
    ("variable", "is_coloured"), [("FORCE_COLOR", True), ("NO_COLOR", False), ("LANG", False)]
)
def test_it_is_coloured_where_that_is_wanted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    is_coloured: bool,
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    path = write(tmp_path / "a.json", {"t.py::a": test(clone())})
    main(["show", path])
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    monkeypatch.setenv(variable, "1")
    main(["show", path])
    shown = capsys.readouterr().out
    assert ("\x1b[33m\x1b[1m   32 B\x1b[0m" in shown) is is_coloured
    assert re.sub(r"\x1b\[\d+m", "", shown) == plain


def test_as_markdown_it_is_what_the_run_wrote(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    graphs = [graph(clone(2048), in_place()), graph(clone(8), suspicious=["a.b"], problem="odd")]
    pytester.makepyfile(
        f"""
        import json, pytest

        @pytest.mark.parametrize("name", range(12))
        def test_it(request, name):
            request.node.user_properties.append(("reinplace", json.dumps({graphs!r})))
        """
    )
    run = pytester.runpytest_inprocess(
        "--reinplace-markdown=a.md", "--reinplace-json=a.json", "-pno:hypothesispytest"
    )
    run.assert_outcomes(passed=12)
    capsys.readouterr()
    assert main(["show", "--markdown", str(pytester.path / "a.json")]) == 0
    assert capsys.readouterr().out == (pytester.path / "a.md").read_text()


@pytest.mark.parametrize(
    "changes",
    [
        {"total": {"tests": "<b>"}, "reasons": {"still-read": "![i](http://example.com)"}},
        {"total": None, "reasons": 3, "versions": None},
        {"versions": {"<script>": "<b>", "a\x1b": "x" * 10**6, "b": 3} | {f"n{i}": "1" for i in range(99)}},
    ],
)
def test_as_markdown_nothing_that_was_not_checked_comes_through(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any]
) -> None:
    name = "t.py::</details>\x1b[2J|\n"
    path = write(tmp_path / "a.json", {name: test(clone(label="<img src=x>", reason="new"))}, **changes)
    assert main(["show", "--markdown", path]) == 0
    text = capsys.readouterr().out
    assert len(text) < 10_000
    assert text.startswith("## Reinplacing\n\n| tests | graphs | candidates | in place | cloned |")
    assert "| 1 | 1 | 1 | 0 | 1 | 32 B |" in text
    assert not re.search(r"<(script|b>|img)|\x1b|!\[", text)
    assert "for an unknown reason" in text


def test_as_markdown_a_report_that_cannot_be_used_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "--markdown", write(tmp_path / "a.json", {}, schema=99)]) == 2
    assert capsys.readouterr().out == ""


def test_an_empty_report_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", write(tmp_path / "a.json", {})]) == 0
    assert capsys.readouterr().out == "reinplace: no test was captured: none ran torch.compile\n"


def test_a_report_that_cannot_be_used_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", write(tmp_path / "a.json", {}, schema=99)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"pytest-reinplace show: error: {tmp_path / 'a.json'}: written by a newer")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["shew"],
        ["show"],
        ["show", "a", "b"],
        ["show", "-v", "--markdown", "a"],
        ["compare", "a"],
        ["merge", "a"],
        ["explain"],
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: pytest-reinplace")


def test_it_imports_no_torch_and_survives_ascii_and_a_closed_pipe(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {f"t.py::ä{i}": test(clone()) for i in range(5000)})
    program = f"""
import sys
from pytest_reinplace.command.main import main
commands = ["compare", {path!r}, {path!r}], ["show", "-vv", {path!r}], ["show", "--markdown", {path!r}]
code = max(map(main, commands))
assert not {{"torch", "triton", "yaml", "numpy"}} & set(sys.modules)
sys.exit(code)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )
    assert done.returncode == 0, done.stderr
    assert r"  t.py::\xe40 " in done.stdout
    assert "  5000x  aten::index_put.self  " in done.stdout
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_reinplace.command", "show", "-vv", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 2
