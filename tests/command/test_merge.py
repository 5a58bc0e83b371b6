"""``pytest-reinplace merge``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_reinplace.base import whole_file

from .reports import clone, in_place, main, test, write


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path).read_text())
    return found


def test_shards_become_one_report(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("a.json"), {"t.py::b": test(clone(8), peak_bytes=7)}, reasons={"x": "1"})
    write(Path("b.json"), {"t.py::a": test(in_place()), "t.py::c": test(clone(2))}, reasons={"y": "2"})
    assert main(["merge", "out.json", "a.json", "b.json"]) == 0
    assert capsys.readouterr().out == "out.json: 3 tests of 2 reports\n"
    found = data("out.json")
    assert found["tests"] == data("a.json")["tests"] | data("b.json")["tests"]
    assert found["reasons"] == {"x": "1", "y": "2"}
    assert found["versions"] == data("a.json")["versions"]
    assert found["total"] == {
        "tests": 3,
        "graphs": 3,
        "candidates": 3,
        "reinplaced": 1,
        "cloned": 2,
        "clone_bytes": 10,
    }
    assert main(["show", "out.json"]) == 0


def test_two_runs_merge_into_what_one_writes(pytester: pytest.Pytester) -> None:
    graphs = test(clone(8), in_place())["graphs"]
    for name in ("test_a", "test_b"):
        pytester.makepyfile(
            **{
                name: f"""
                import json
                def test_it(request):
                    request.node.user_properties.append(("reinplace", json.dumps({graphs!r})))
                """
            }
        )
    for out, more in {"1.json": "test_a.py", "2.json": "test_b.py", "both.json": "."}.items():
        pytester.runpytest_inprocess(f"--reinplace-json={out}", "-pno:hypothesispytest", more)
    assert main(["merge", "merged.json", "2.json", "1.json"]) == 0
    assert Path("merged.json").read_bytes() == Path("both.json").read_bytes()


def test_a_test_in_two_shards_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("a.json"), {"t.py::a\x1b": test(), "t.py::b": test()})
    write(Path("b.json"), {"t.py::a\x1b": test()})
    assert main(["merge", "out.json", "a.json", "b.json"]) == 2
    assert capsys.readouterr().err == (
        "pytest-reinplace merge: error: test 't.py::a\\\\x1b' is in a.json and in b.json; expected each "
        "test in one shard only\n"
    )
    assert not Path("out.json").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"versions": {"torch": "2.11.0"}}, "b.json: expected 'versions' to be as in a.json, {"),
        ({"backend": "inductor"}, """expected 'backend' to be as in a.json, "graph", got "inductor";"""),
        ({"pass": "exact"}, """expected 'pass' to be as in a.json, null, got "exact";"""),
        ({"reasons": {"x": "3"}}, """expected 'reasons.x' to be as in a.json, "1", got "3";"""),
        ({"device": {"name": "b"}}, """expected 'device.name' to be as in a.json, "a", got "b";"""),
        ({"commit": "2"}, "expected 'commit' to be as in a.json, null, got"),
    ],
)
def test_shards_that_do_not_belong_together_are_refused(
    changes: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Path("a.json"), {"a": test()}, reasons={"x": "1"}, device={"name": "a"})
    write(Path("b.json"), {"b": test()}, **{"reasons": {"x": "1"}, "device": {"name": "a"}, **changes})
    assert main(["merge", "out.json", "a.json", "b.json"]) == 2
    assert message in capsys.readouterr().err
    assert not Path("out.json").exists()


@pytest.mark.parametrize("order", [("a.json", "b.json"), ("b.json", "a.json")])
def test_a_shard_that_compiled_nothing_knows_no_device(order: tuple[str, str]) -> None:
    write(Path("a.json"), {"a": test()}, device={"name": "NVIDIA H200", "slug": "nvidia-h200"})
    write(Path("b.json"), {"b": test()}, device=None)
    assert main(["merge", "out.json", *order]) == 0
    assert data("out.json")["device"] == {"name": "NVIDIA H200", "slug": "nvidia-h200"}


def test_an_existing_file_is_replaced_by_force_only(capsys: pytest.CaptureFixture[str]) -> None:
    """``merge shard-*.json`` would write the second shard over the first."""
    write(Path("1.json"), {"a": test()})
    write(Path("2.json"), {"b": test()})
    before = Path("1.json").read_bytes()
    assert main(["merge", "1.json", "2.json"]) == 2
    assert "1.json: exists already; give --force to replace it" in capsys.readouterr().err
    assert Path("1.json").read_bytes() == before
    assert main(["merge", "--force", "1.json", "1.json", "2.json"]) == 0
    assert sorted(data("1.json")["tests"]) == ["a", "b"]


def test_a_damaged_shard_leaves_everything_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("a.json"), {"a": test()})
    write(Path("out.json"), {"old": test()})
    Path("b.json").write_text('{"schema": 1, "tes')
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert main(["merge", "--force", "out.json", "a.json", "b.json"]) == 2
    assert "b.json: expected a whole JSON report" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_a_file_that_cannot_be_written_leaves_what_was_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Path("a.json"), {"a": test()})
    assert main(["merge", "none/out.json", "a.json"]) == 2
    assert "none/out.json: cannot be written: No such file" in capsys.readouterr().err
    write(Path("out.json"), {"old": test()})
    before = {path.name: path.read_bytes() for path in Path().iterdir()}

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole_file.os, "replace", full)
    assert main(["merge", "--force", "out.json", "a.json"]) == 2
    assert "out.json: cannot be written: No space left" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before
