"""``pytest-reinplace corpus``: the entries that are installed, without a checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..house.checkout import python

COMMAND = ("-m", "pytest_reinplace.command", "corpus")


def test_an_entry_runs_and_the_options_are_handed_through(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    only = ("-k", "ring-buffer and exact", "--reinplace-backend=graph", "-n", "1")
    done = python(*COMMAND, *only, "--reinplace-json=a.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout and "PytestAssertRewriteWarning" not in done.stdout
    (test,) = json.loads((tmp_path / "a.json").read_text())["tests"].items()
    assert test[0] == "ring-buffer.reinplace.yaml::ring-buffer[exact]"
    assert test[1]["graphs"][0]["backend"] == "graph"
    assert {path.name for path in tmp_path.iterdir()} <= {
        "a.json",
        "pytest.ini",
        ".pytest_cache",
        ".benchmarks",
    }


def test_its_exit_code_is_that_of_pytest(tmp_path: Path) -> None:
    none = python(*COMMAND, "-k", "no-entry-is-called-so", "--collect-only", "-q", cwd=tmp_path)
    assert none.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, none.stdout + none.stderr
    wrong = python(*COMMAND, "--no-such-option", cwd=tmp_path)
    assert wrong.returncode == pytest.ExitCode.USAGE_ERROR
    assert "unrecognized arguments: --no-such-option" in wrong.stderr
