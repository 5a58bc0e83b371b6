"""Annotations in GitHub's workflows."""

from __future__ import annotations

import re

import pytest

from pytest_reinplace.compare.comparison import compare
from pytest_reinplace.compare.limit import limit
from pytest_reinplace.reports.annotation import MOST, Workflow, commands, compared

from ..command.reports import clone, stored
from ..command.reports import test as stored_test
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


def annotated(old: dict[str, object], new: dict[str, object], *limits: str) -> list[str]:
    found = compare(stored(old), stored(new), [limit(text) for text in limits])
    return compared(found, Workflow("/w/sub", "/w"))


def test_a_clone_that_moved_is_told_at_its_new_line() -> None:
    old, new = {"a": stored_test(clone(label="k.k"))}, {"a": stored_test(clone(label="k.v", source="m.py:9"))}
    text = (
        "file=sub/m.py,line=9,title=k.v is a new clone%2C 32 B::the clone moved from k.k at m.py:3 to k.v at "
        "m.py:9: 32 B, the old value is still read after this write; held back by sum_1 (aten::sum) at "
        "m.py:4; hint: read it before; in a"
    )
    assert annotated(old, new) == annotated(old, new, "new_clones:1") == [f"::notice {text}"]
    assert annotated(old, new, "new_clones:0") == [f"::error {text}"]
    assert annotated(new, new) == annotated(new, {"a": stored_test()}) == []


def test_new_clones_of_one_line_are_one_annotation_and_there_are_ten_at_most() -> None:
    two = {name: stored_test(clone(source="m.py:9")) for name in "ab"}
    (found,) = annotated({name: stored_test() for name in "ab"}, two, "new_clones:0")
    assert "title=aten%3A%3Aindex_put.self and others%2C 2 new clones%2C 64 B::new clone " in found
    many = stored_test(*(clone(size, source=f"m.py:{size}") for size in range(1, 31)))
    lines = [re.search("line=([0-9]+)", one) for one in annotated({"a": stored_test()}, {"a": many})]
    assert [line[1] for line in lines if line] == [str(size) for size in range(30, 30 - MOST, -1)]


def test_hostile_new_clones_make_no_command() -> None:
    bad = "x\x1b[31m\n::error::,a=b:%0A"
    (found,) = annotated(
        {bad: stored_test()}, {bad: stored_test(clone(label=bad, source=f"{bad}:3"))}, "new_clones:0"
    )
    assert found.isprintable()
    assert re.fullmatch(r"::error file=[^,:]*,line=3,title=[^,:]*::.*", found)
