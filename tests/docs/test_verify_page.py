"""The guide to --reinplace-verify: its finding is what its example gives."""

from __future__ import annotations

import re

import pytest
import torch

from .page import DOCS, blocks


def test_the_finding_is_the_one_of_the_example(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")  # with pytest's cache
    found = list(blocks((DOCS / "how-to" / "verify.md").read_text()))
    for block in found:
        if block.title:
            (project.path / block.title).write_text(block.text)
    shown = next(block.text for block in found if block.language == "console" and "greedy" in block.text)
    command, *lines = shown.splitlines()
    torch._dynamo.reset()
    result = project.runpytest_inprocess(*command.split()[2:])
    result.assert_outcomes(failed=1)
    came = result.stdout.str()
    assert [
        line for line in lines if line not in came.splitlines() and "breaks the contract" not in line
    ] == []
    assert re.search(re.escape(lines[0].partition(" first at")[0]), came)
    result.stdout.fnmatch_lines(["1 graph checked, 1 wrong, 0 not checked"])
