"""docs/command-line.md: its commands and options exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from pytest_reinplace import passes
from pytest_reinplace.command import main

from .reports import clone, in_place, test, write

TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
COMMANDS = re.findall(r"^\$ pytest-reinplace (.*)$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(main, "_run", lambda given: seen.append(given.command) or 0)
    assert main.main(shlex.split(command)) == 0
    assert seen == [command.split()[0]]


def test_every_command_is_shown() -> None:
    shown = {"show", "compare", "history", "merge", "explain", "blame", "memory", "comment", "corpus"}
    assert {command.split()[0] for command in COMMANDS} == shown


def test_options_of_pytest_are_understood(pytester: pytest.Pytester) -> None:
    (arguments,) = re.findall(r"^\$ pytest (.*)$", TEXT, re.MULTILINE)
    config = pytester.parseconfig(*shlex.split(arguments))
    assert config.getoption("reinplace_fail_on") == ["clones:0", "clone_bytes:1%"]


def test_the_settings_are_understood(pytester: pytest.Pytester) -> None:
    (settings,) = re.findall(r"^```toml\n(.*?)```$", TEXT, re.MULTILINE | re.DOTALL)
    pytester.makepyprojecttoml(settings)
    (pytester.path / "baseline.json").write_text('{"schema": 1, "tests": {}}')
    config = pytester.parseconfigure()
    assert config.getoption("reinplace_compare") == str(pytester.path / "baseline.json")
    assert config.getoption("reinplace_fail_on") == ["clones:0", "clone_bytes:1%"]


# Its lines 12 and 13 are those of the page.
LAYERS = """import torch


def inputs():
    rows, places = torch.ones(1024, 64), torch.arange(8)
    return rows, places, torch.ones(8, 64)


# The sum reads what the write replaces.
def update(x, places, rows):
    y = x * 2
    new = y.index_put((places,), rows)
    return new, y.sum()
"""


def test_explain_prints_what_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(
        r"^```console\n(\$ pytest-reinplace explain.*?)^```$", TEXT, re.MULTILINE | re.DOTALL
    )
    shown = re.findall(r"^\$ pytest-reinplace (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE)
    (tmp_path / "mylib").mkdir()
    for name in ("layers", "examples"):
        (tmp_path / "mylib" / f"{name}.py").write_text(LAYERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    printed = [(command, text) for command, text in shown if text]
    assert len(printed) == 2
    for command, text in printed:
        assert main.main(shlex.split(command)) == 0
        assert capsys.readouterr().out.replace("mylib/layers.py", "layers.py") == text


def test_compare_prints_what_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (command, text) = re.findall(
        r"^\$ pytest-reinplace (compare .*clones:0 .*)\n((?:[^$`].*\n)+)", TEXT, re.M
    )[0]
    ours = passes.Reason.MISSED.hint.partition(": ")[2]
    read = {"node": "sum_1", "op": "aten::sum", "source": "model.py:10"}
    new = clone(
        4064, source="model.py:9", blockers=[read], hint=f"our pass reads it before the write: {ours}"
    )
    tests = [f"test_a.py::test_{name}" for name in ("one", "two", "three")]
    write(tmp_path / "main.json", {name: test(clone(source="model.py:3")) for name in tests})
    kept = test(clone(source="model.py:3"))
    after = {tests[0]: test(clone(source="model.py:3"), new), tests[1]: test(in_place()), tests[2]: kept}
    write(tmp_path / "pr.json", after)
    monkeypatch.chdir(tmp_path)
    assert main.main(shlex.split(command)) == 1
    assert capsys.readouterr().out == text
