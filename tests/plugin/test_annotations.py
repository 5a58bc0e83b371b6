"""Annotations in GitHub's workflows."""

from __future__ import annotations

import re

import pytest

from pytest_reinplace.reports.annotation import MOST, Workflow, commands

from .documents import graph, hostile, in_place, outcome, report

TESTS = """
import torch
from programs import *

def test_clones():
    torch.compile(keep)(*inputs(keep))
"""


def made(*outcomes: dict[str, object], folder: str = "/w", workspace: str = "/w") -> list[str]:
    return commands(report({"t.py::test": [graph(*outcomes)]}), Workflow(folder, workspace))


def test_a_workflow_that_asks_for_the_report_gets_them(
    compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(compiling.path.parent))
    compiling.makepyfile(test_it=TESTS)
    lines = compiling.runpytest_inprocess("--reinplace-report").outlines
    (found,) = [line for line in lines if line.startswith("::")]
    assert re.fullmatch(
        rf"::warning file={compiling.path.name}/programs\.py,line=\d+,title=aten%3A%3Aindex_put\.self "
        r"cloned%2C 32 B::the old value is still read after this write; held back by sum_1 \(aten::sum\) at "
        r"programs\.py:\d+; hint: .*; in test_it\.py::test_clones",
        found,
    )
    assert not any("::warning" in line for line in compiling.runpytest_inprocess().outlines)
    monkeypatch.setenv("GITHUB_ACTIONS", "false")
    assert not any("::warning" in x for x in compiling.runpytest_inprocess("--reinplace-report").outlines)


def test_clones_of_one_line_are_one_annotation_and_the_largest_come_first() -> None:
    small = outcome("a::b.c", nbytes=8, source="other.py:1")
    found = made(small, outcome(nbytes=4), outcome(nbytes=16), in_place())
    assert [text.split("::")[1].split(",title=")[0] for text in found] == [
        "warning file=model.py,line=7",
        "warning file=other.py,line=1",
    ]
    assert "title=aten%3A%3Aindex_put.self and others%2C 2 clones%2C 20 B::" in found[0]


def test_without_a_line_there_is_no_file() -> None:
    (found,) = made(outcome(source=None, blockers=[], hint=""))
    assert found == (
        "::warning title=aten%3A%3Aindex_put.self cloned%2C 32 B::"
        "the old value is still read after this write; in t.py::test"
    )


@pytest.mark.parametrize(
    ("source", "folder", "file"),
    [("a/m.py:3", "/w/sub", "sub/a/m.py"), ("/w/m.py:3", "/x", "m.py"), ("/lib/m.py:3", "/w", "/lib/m.py")],
)
def test_files_are_relative_to_the_checkout(source: str, folder: str, file: str) -> None:
    assert f"file={file},line=3," in made(outcome(source=source), folder=folder)[0]


def test_there_are_ten_at_most() -> None:
    assert len(made(*(outcome(source=f"m.py:{i}") for i in range(30)))) == MOST


def test_no_clone_none() -> None:
    assert made(in_place()) == []


def test_hostile_names_make_no_command_and_no_property() -> None:
    for text in commands(hostile(), Workflow("/w", "/w")):
        assert "\n" not in text
        assert "\r" not in text
        assert "\x1b" not in text
        head, properties, _ = re.fullmatch(r"::(warning) ([^:]*)::(.*)", text).groups()  # type: ignore[union-attr]
        assert head == "warning"
        assert [one.partition("=")[0] for one in properties.split(",")] == ["file", "line", "title"]
