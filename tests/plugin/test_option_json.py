"""--reinplace-json."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pytest_reinplace.reports.target import write

TESTS = """
import torch
from programs import *

def test_clones():
    torch.compile(keep)(*inputs(keep))

def test_fails():
    torch.compile(call_op)(*inputs(call_op))
    assert False
"""


def test_the_file_holds_tests_graphs_and_totals(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it=TESTS)
    compiling.runpytest_inprocess("--reinplace-json=new/folder/out.json").assert_outcomes(passed=1, failed=1)
    data = json.loads((compiling.path / "new/folder/out.json").read_text())
    assert data["schema"] == 1
    assert data["backend"] == "graph"
    assert data["pass"] is None
    assert data["versions"]["torch"].startswith("2.")
    assert data["total"] == {
        "tests": 2,
        "graphs": 2,
        "candidates": 2,
        "reinplaced": 1,
        "cloned": 1,
        "clone_bytes": 32,
    }
    one = data["tests"]["test_it.py::test_clones"]
    assert one["outcome"] == "passed"
    (graph,) = one["graphs"]
    assert (graph["graph"], graph["pass"], graph["backend"]) == ("[fw 0/0]", "inductor", "graph")
    assert graph["clones"] == ["aten::index_put.self"]
    (outcome,) = graph["outcomes"]
    assert outcome["reason"] == "still-read"
    assert outcome["source"].startswith("programs.py:")
    assert data["tests"]["test_it.py::test_fails"]["outcome"] == "failed"


@pytest.mark.parametrize("option", ["json", "html", "markdown"])
def test_a_test_file_after_an_option_without_its_path_stays(pytester: pytest.Pytester, option: str) -> None:
    file = pytester.makepyfile(test_it="def test_it(): pass")
    before = file.read_text()
    result = pytester.runpytest_inprocess(f"--reinplace-{option}", "test_it.py")
    error = "expected a file to write a report to, got the source file 'test_it.py'"
    result.stderr.fnmatch_lines([f"ERROR: --reinplace-{option}: {error}"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert file.read_text() == before


def test_keys_are_sorted_and_runs_agree(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it=TESTS)
    for name in ("a.json", "b.json"):
        compiling.runpytest_inprocess(f"--reinplace-json={name}")
    first, second = ((compiling.path / name).read_text() for name in ("a.json", "b.json"))
    assert first == second == json.dumps(json.loads(first), indent=1, sort_keys=True) + "\n"


def test_without_it_no_file_is_written(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it="def test_nothing(): pass")
    before = set(compiling.path.iterdir())
    compiling.runpytest_inprocess("-p", "no:cacheprovider")
    assert {p.name for p in set(compiling.path.iterdir()) - before} <= {"__pycache__"}


@pytest.mark.parametrize(("path", "why"), [("folder", "it is a directory"), ("file/out.json", "file")])
def test_a_path_that_cannot_be_written_stops_before_the_first_test(
    compiling: pytest.Pytester, path: str, why: str
) -> None:
    (compiling.path / "folder").mkdir()
    (compiling.path / "file").write_text("")
    compiling.makepyfile("def test_it(): raise SystemExit('ran')")
    result = compiling.runpytest_inprocess(f"--reinplace-json={path}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --reinplace-json: cannot write *{path}: *{why}*"])
    result.stdout.no_fnmatch_line("*ran*")


def test_an_empty_path_is_refused(compiling: pytest.Pytester) -> None:
    result = compiling.runpytest_inprocess("--reinplace-json=")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --reinplace-json: expected a path, got an empty one"])


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")
    monkeypatch.setattr("os.replace", _refuse)
    with pytest.raises(OSError, match="no space"):
        write(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]


def _refuse(*args: object) -> None:
    raise OSError("no space")


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    write(Path(os.devnull), "new")
    assert not Path(os.devnull).is_file()
    link, path = tmp_path / "link", tmp_path / "out.json"
    link.symlink_to(path)
    write(link, "new")
    assert (link.is_symlink(), path.read_text()) == (True, "new")


def test_the_graphs_are_drawn(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it=TESTS)
    compiling.runpytest_inprocess("--reinplace-json=out.json")
    data = json.loads((compiling.path / "out.json").read_text())
    (graph,) = data["tests"]["test_it.py::test_fails"]["graphs"]
    assert any("auto_functionalized" in line["text"] for line in graph["picture"]["before"])
    assert any("plugintest.write" in line["text"] for line in graph["picture"]["after"])
    assert graph["picture"]["memory"]["peak_functional"] > graph["picture"]["memory"]["peak_decided"]


def test_an_interrupted_session_writes_what_is_known(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it=TESTS + "\n\ndef test_stop():\n    raise KeyboardInterrupt\n")
    result = compiling.runpytest_inprocess("--reinplace-json=out.json", no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    data = json.loads((compiling.path / "out.json").read_text())
    assert list(data["tests"]) == ["test_it.py::test_clones", "test_it.py::test_fails"]
    assert sys.modules["torch._inductor.compile_fx"].compile_fx.__module__ == "torch._inductor.compile_fx"


def test_nothing_is_drawn_where_no_file_shows_it(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        test_it="""
        import torch
        from programs import keep, inputs

        def test_it(reinplace):
            torch.compile(keep)(*inputs(keep))
            assert reinplace.graphs[0].picture is None
        """
    )
    compiling.runpytest_inprocess("--reinplace-report").assert_outcomes(passed=1)


def test_a_file_that_cannot_be_written_in_the_end_takes_no_other_along(compiling: pytest.Pytester) -> None:
    gone = "\n\ndef test_gone():\n    import shutil\n    shutil.rmtree('folder')\n"
    compiling.makepyfile(test_it=TESTS.replace("assert False", "") + gone)
    result = compiling.runpytest_inprocess("--reinplace-json=folder/out.json", "--reinplace-markdown=out.md")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["ERROR: --reinplace-json: cannot write *folder/out.json: *", "*3 passed*"])
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    assert "test&#95;clones" in (compiling.path / "out.md").read_text()
