"""``pytest-reinplace memory`` with ``--html``, ``--perfetto``, ``--snapshot`` and ``--beside``."""

from __future__ import annotations

import json
import os
import pickle
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ..memory_views.test_perfetto import SCHEMA
from ..memory_views.test_snapshot import levels, validate
from ..plugin.pages import Page
from .reports import main

pytest.importorskip("jinja2")

PROGRAMS = """
import torch

library = torch.library.Library("picturetest", "FRAGMENT")
library.define("dense(Tensor x) -> Tensor", tags=(torch.Tag.needs_contiguous_strides,))
library.define("scratch(Tensor x) -> Tensor")
library.impl("dense", lambda x: (x + 1).contiguous(), "CPU")
library.impl("scratch", lambda x: x + torch.zeros(1000)[0], "CPU")
torch.library.register_fake("picturetest::dense", lambda x: x.new_empty(x.shape), lib=library)
torch.library.register_fake("picturetest::scratch", torch.empty_like, lib=library)
library.define("bump_(Tensor(a!) x, Tensor v) -> ()")
library.impl("bump_", lambda x, v: (x.add_(v), None)[1], "CPU")
torch.library.register_fake("picturetest::bump_", lambda x, v: None, lib=library)
ops = torch.ops.picturetest

def step(a, v):
    b = a @ a
    c = b.index_put((torch.arange(8),), v)
    d = a * 2
    return c @ a, b @ a, d, ops.scratch(ops.dense(d.t()))

def kept(a, v):
    b = a.clone()
    ops.bump_(b, v)
    return a + b

weight = torch.ones(8, 8, requires_grad=True)

def training(x):
    (x @ weight).sin().sum().backward()

def nothing(x):
    return x
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unoptimized: None) -> str:
    """Return the name of a module in the working folder, another one for each test."""
    name = f"drawn_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(PROGRAMS.replace("picturetest", f"picturetest_{tmp_path.name}"))
    monkeypatch.chdir(tmp_path)
    return name


def memory(function: str, *arguments: str) -> int:
    return main(["memory", function, "--shape", "float32[8,8]", *arguments])


def refused(capsys: pytest.CaptureFixture[str], function: str, *arguments: str) -> str:
    """Return what is said of a command that cannot be done."""
    assert memory(function, *arguments) == 2
    return capsys.readouterr().err


def kinds(trace: dict[str, Any], pass_name: str) -> Counter[str]:
    """Return how many slices of each kind the programs of a pass have."""
    names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    return Counter(
        event["cat"]
        for event in trace["traceEvents"]
        if event["ph"] == "X" and names[event["pid"]].endswith(f" pass {pass_name}")
    )


def test_all_files_tell_of_both_passes(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = ("--html", "m.html", "--perfetto", "m.json", "--snapshot", "m.pickle")
    both = ("--beside", "inductor", "--pass", "exact")
    assert memory(f"{programs}:step", "--shape", "float32[8,8]", *both, *files, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["pass"], found["beside"]["pass"]) == ("exact", "inductor")
    trace = json.loads(Path("m.json").read_text())
    stock, ours = kinds(trace, "inductor"), kinds(trace, "exact")
    assert (stock["copy"], ours["copy"]) == (1, 1)
    assert (stock["clone"], ours["clone"]) == (1, 0)
    assert stock["outside"] == ours["outside"] == 2  # dense and scratch
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    (clone,) = (event["args"] for event in slices if event["cat"] == "clone")
    assert clone["why"] == "aten::index_put.self: the old value is still read after this write"
    assert clone["source"] == f"{programs}.py:18"
    copied = next(event["args"] for event in slices if event["cat"] == "copy")
    assert "::dense.x: " in copied["why"]
    _check_sums(trace, found)
    text = Path("m.html").read_text()
    page = Page(text)
    assert page.problems == []
    assert "before: pass inductor" in page.text
    assert "after: pass exact" in page.text
    assert text.count('<rect class="clone" x=') == 2  # the bar, and its place in the legend


def _check_sums(trace: dict[str, Any], found: dict[str, Any]) -> None:
    """Hold the peaks of trace and snapshot against those that the command prints."""
    import jsonschema

    jsonschema.validate(trace, SCHEMA)
    peaks = [one["peak"] for side in (found["beside"], found) for one in side["programs"]]
    assert peaks == [found["beside"]["measured_peak"], found["measured_peak"]]
    most: dict[int, int] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "C":
            most[event["pid"]] = max(event["args"]["bytes"], most.get(event["pid"], 0))
    assert list(most.values()) == peaks
    snapshot = pickle.loads(Path("m.pickle").read_bytes())
    validate(snapshot)
    assert [max(levels(snapshot, i)) for i in range(len(peaks))] == peaks


def test_a_clone_that_was_in_a_wrapper_is_a_clone(programs: str) -> None:
    assert memory(f"{programs}:kept", "--shape", "float32[8,8]", "--perfetto", "m.json") == 0
    trace = json.loads(Path("m.json").read_text())
    (clone,) = (e["args"] for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "clone")
    assert clone["why"].partition("::")[2].startswith("bump_.x: ")
    assert clone["source"] == f"{programs}.py:24"


def test_a_forward_and_its_backward_are_two_programs(
    programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert memory(f"{programs}:training", "--snapshot", "m.pickle", "--perfetto", "m.json", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    snapshot = pickle.loads(Path("m.pickle").read_bytes())
    peaks = [one["peak"] for one in found["programs"]]
    assert len(peaks) == 2
    assert [max(levels(snapshot, i)) for i in range(2)] == peaks
    assert kinds(json.loads(Path("m.json").read_text()), "inductor")["input"] > 0


def test_the_text_has_the_pass_beside_first(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert memory(f"{programs}:training", "--beside", "inductor", "--pass", "exact") == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if ", backend inductor" in line]
    assert heads == [f"{programs}:training: pass {name}, backend inductor" for name in ("inductor", "exact")]
    assert not [path for path in Path.cwd().iterdir() if path.suffix in (".html", ".json", ".pickle")]


@pytest.mark.parametrize("option", ["--html", "--perfetto", "--snapshot"])
def test_a_file_that_cannot_be_written_is_said_before_anything_is_compiled(
    programs: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with mock.patch("pytest_reinplace.command.memory._measured", side_effect=AssertionError):
        told = refused(capsys, f"{programs}:training", option, "no/such/file")
    assert "error: cannot write no/such/file: there is no folder no/such" in told


def test_a_file_that_is_a_folder_is_an_error(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkdir("taken")
    told = refused(capsys, f"{programs}:training", "--perfetto", "taken")
    assert "error: cannot write taken: Is a directory" in told
    assert os.listdir("taken") == []


def test_where_no_program_ran_no_file_is_written(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, f"{programs}:nothing", "--html", "m.html", "--snapshot", "m.pickle")
    assert "no graph was compiled" in told
    assert not Path("m.html").exists()
    assert not Path("m.pickle").exists()


def test_the_page_needs_jinja(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    with mock.patch("pytest_reinplace.command.memory.missing", return_value=["jinja2"]):
        told = refused(capsys, f"{programs}:training", "--html", "m.html")
    assert "--html needs jinja2: pip install jinja2" in told


def test_an_unknown_pass_beside_is_named(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, f"{programs}:training", "--beside", "no.such:thing")
    assert "--beside: " in told
