"""docs/command-line.md: its commands and options exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from pytest_reinplace.command import main

TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
COMMANDS = re.findall(r"^\$ pytest-reinplace (.*)$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(main, "_run", lambda given: seen.append(given.command) or 0)
    assert main.main(shlex.split(command)) == 0
    assert seen == [command.split()[0]]


def test_every_command_is_shown() -> None:
    shown = {"show", "compare", "history", "merge", "explain", "comment", "corpus"}
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
