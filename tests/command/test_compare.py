"""``pytest-reinplace compare``."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_reinplace.compare.comparison import compare
from pytest_reinplace.compare.comparison_json import schema
from pytest_reinplace.compare.comparison_text import MOST_CHARACTERS, markdown
from pytest_reinplace.compare.limit import limit

from ..plugin.test_report_schema import closed
from .reports import clone, in_place, main, stored, test, write

jsonschema = pytest.importorskip("jsonschema")

READ = "the old value is still read after this write"
HELP = "; held back by sum_1 (aten::sum) at m.py:4; hint: read it before"


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two reports: ``a`` is worse by one clone, ``b`` is better, ``c`` is the same."""
    monkeypatch.chdir(tmp_path)
    same = {"t.py::c": test(clone())}
    write(
        Path("old.json"), {"t.py::a": test(clone()), "t.py::b": test(clone()), "t.py::gone": test(), **same}
    )
    new = {"t.py::a": test(clone(), clone(4096)), "t.py::b": test(in_place()), "t.py::new": test(), **same}
    write(Path("new.json"), new)
    return ["compare", "old.json", "new.json"]


def test_the_table_shows_old_and_new(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(pair) == 0
    assert capsys.readouterr().out.splitlines() == [
        "old.json → new.json",
        "test              clones  clone bytes",
        "t.py::a           1 → 2   32 B → 4.0 KiB",
        "t.py::b           1 → 0   32 B → 0 B",
        "total of 3 tests  3       96 B → 4.1 KiB",
        "3 tests in both reports, 1 unchanged",
        "1 new clone:",
        "  t.py::a: aten::index_put.self at m.py:3: 4.0 KiB (4096 B), " + READ + HELP,
        "1 clone gone:",
        "  t.py::b: aten::index_put.self at m.py:3: 32 B, " + READ,
        "1 new test, not compared:",
        "  t.py::new",
        "1 removed test, not compared:",
        "  t.py::gone",
        "1 test improved; update the baseline:",
        "  t.py::b",
    ]


def test_a_limit_that_is_exceeded_is_exit_code_1(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*pair, "--fail-on", "clones:0", "--fail-on=clone_bytes:1GiB"]) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "over the limit:",
        "  t.py::a: clones 1 → 2, +1, +100.0 %; allowed is clones:0",
        "1 test over a limit (clones:0 exceeded, clone_bytes:1GiB held)",
    ]


def test_a_limit_that_holds_is_exit_code_0(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*pair, "--fail-on", "clones:1", "--fail-on", "clone_bytes:4KiB"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "within the limits clones:1, clone_bytes:4KiB"


def test_the_same_report_twice_changes_nothing(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "old.json", "old.json", "--fail-on", "clones:0"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "4 tests in both reports, 4 unchanged",
        "within the limits clones:0",
    ]


def test_a_moved_clone_and_one_for_another_reason_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("old.json"), {"a": test(clone(label="k.k"), clone(8, label="k.x"))})
    new = {"a": test(clone(label="k.v", source="m.py:9"), clone(8, label="k.x", reason="layout"))}
    write(Path("new.json"), new)
    assert main(["compare", "old.json", "new.json"]) == 0
    moved = f"a: from k.k at m.py:3 to k.v at m.py:9: 32 B, {READ}{HELP}"
    assert capsys.readouterr().out.splitlines() == [
        "old.json → new.json",
        "test             clones  clone bytes",
        "a                2       40 B",
        "total of 1 test  2       40 B",
        "1 test in both reports, 0 unchanged",
        "1 moved clone:",
        f"  {moved}",
        "1 clone for another reason:",
        "  a: k.x at m.py:3: 8 B, still-read → layout: the result has other strides than the operand, and a "
        "reader depends on them",
    ]
    assert main(["compare", "old.json", "new.json", "--markdown"]) == 0
    out = html.unescape(capsys.readouterr().out)
    assert "### 1 moved clone\n\n- <code>a</code>" + moved[1:] + "\n" in out
    assert (
        "### 1 clone for another reason\n\n- <code>a</code>: k.x at m.py:3: 8 B, still-read → layout" in out
    )


def test_a_new_clone_over_the_limit_is_told_once(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for form in ([], ["--markdown"]):
        assert main([*pair, "--fail-on", "new_clones:0", *form]) == 1
        out = html.unescape(capsys.readouterr().out).replace("<code>", "").replace("</code>", "")
        new = f"aten::index_put.self at m.py:3: 4.0 KiB (4096 B), {READ}"
        assert f" t.py::a: new clone {new}; allowed is new_clones:0{HELP}\n" in out
        assert out.count(new) == 1
        assert "1 clone gone" in out


def test_json_has_the_same(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*pair, "--json", "--fail-on", "new_clones:0", "--fail-on", "clones:2"]) == 1
    out = capsys.readouterr().out
    found = json.loads(out)
    described = jsonschema.Draft202012Validator(closed(schema()))
    described.check_schema(schema())
    described.validate(found)
    assert out == json.dumps(found, indent=1, sort_keys=True) + "\n"
    tests = found.pop("tests")
    assert found == {
        "schema": 1,
        "old": "old.json",
        "new": "new.json",
        "remarks": [],
        "passed": False,
        "limits": ["new_clones:0", "clones:2"],
        "bounds": {"new_clones:0": "exceeded", "clones:2": "held"},
        "failures": [],
        "added": ["t.py::new"],
        "removed": ["t.py::gone"],
    }
    told = {"label": "aten::index_put.self", "reason": "still-read", "source": "m.py:3"}
    told |= {"held_by": "sum_1 (aten::sum) at m.py:4", "hint": "read it before", "follows": ""}
    assert tests["t.py::a"] == {
        "old": {"clones": 1, "clone_bytes": 32},
        "new": {"clones": 2, "clone_bytes": 4128},
        "excesses": [
            f"new clone aten::index_put.self at m.py:3: 4.0 KiB (4096 B), {READ}; allowed is new_clones:0"
            + HELP
        ],
        "exceeded": ["new_clones:0"],
        "remarks": [],
        "advice": [],
        "improved": [],
        "clones": [{"kind": "new", "old": None, "new": {**told, "nbytes": 4096}}],
    }
    assert tests["t.py::b"]["clones"] == [{"kind": "gone", "old": {**told, "nbytes": 32}, "new": None}]
    assert tests["t.py::b"]["improved"] == ["clones", "clone_bytes"]
    assert tests["t.py::c"]["clones"] == []


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("schema",), 2),
        (("passed",), "yes"),
        (("tests", "t.py::a", "clones", 0, "kind"), "same"),
        (("tests", "t.py::a", "clones", 0, "new"), {"label": "k.a"}),
        (("tests", "t.py::a", "old"), {"clones": 1}),
    ],
)
def test_the_schema_refuses_what_is_no_comparison(
    pair: list[str], capsys: pytest.CaptureFixture[str], where: tuple[Any, ...], value: Any
) -> None:
    main([*pair, "--json"])
    wrong = json.loads(capsys.readouterr().out)
    inner = wrong
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema())


def test_json_and_markdown_exclude_each_other(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*pair, "--json", "--markdown"])
    assert caught.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err


def test_in_a_workflow_new_clones_are_annotations_beside_the_comment(
    pair: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main([*pair, "--markdown"])
    outside = capsys.readouterr()
    assert outside.err == ""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(Path.cwd()))
    main([*pair, "--markdown"])
    inside = capsys.readouterr()
    assert inside.out == outside.out
    assert inside.err == (
        "::notice file=m.py,line=3,title=aten%3A%3Aindex_put.self is a new clone%2C 4.0 KiB (4096 B)::new "
        f"clone aten::index_put.self at m.py:3: 4.0 KiB (4096 B), {READ}{HELP}; in t.py::a\n"
    )


def test_a_wrong_limit_is_exit_code_2(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*pair, "--fail-on", "clone:0"])
    assert caught.value.code == 2
    assert (
        "argument --fail-on: no metric is called 'clone': did you mean 'clones'?" in capsys.readouterr().err
    )


def test_a_report_that_cannot_be_read_is_exit_code_2(
    pair: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("new.json").write_text(Path("new.json").read_text()[:100])
    assert main([*pair, "--fail-on", "clones:0"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("pytest-reinplace compare: error: new.json: expected a whole JSON report")


def test_the_reports_are_not_written_to(pair: list[str]) -> None:
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    main(pair)
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_names_with_control_codes_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["a\x1b[31m\nb", "only\x1b[31m old", "only\x9b new"]
    old = write(tmp_path / "old.json", {name: test(clone()) for name in names[:2]})
    new = write(tmp_path / "new.json", {name: test(clone(), clone()) for name in names[::2]})
    for more in ([], ["--markdown"]):
        assert main(["compare", old, new, "--fail-on", "clones:0", *more]) == 1
        out = capsys.readouterr().out
        assert all(line.isprintable() for line in out.splitlines())
        assert "\\x1b[31m\\nb" in out.replace("&#92;", "\\").replace("&#91;", "[")


def test_markdown_has_the_same(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*pair, "--markdown", "--fail-on", "clones:0"]) == 1
    out = capsys.readouterr().out.replace("&#46;", ".").replace("&#58;", ":")
    assert out.startswith("## Reinplacing: <code>old</code> → <code>new</code> ❌\n")
    for line in (
        "- <code>t.py::a</code>: clones 1 → 2, +1, +100.0 %; allowed is clones:0",
        "| test | clones | clone bytes |",
        "| <code>t.py::a</code> | 1 → 2 | 32 B → 4.0 KiB |",
        "### 1 new test, not compared",
        "### 1 removed test, not compared",
        "### 1 new clone",
        "### 1 clone gone",
        "### 1 test improved; update the baseline",
        "3 tests in both reports, 1 unchanged",
    ):
        assert line in out.splitlines()
    assert main([*pair, "--markdown"]) == 0
    assert "❌" not in capsys.readouterr().out
    assert main([*pair, "--markdown", "--fail-on", "clones:5"]) == 0
    assert "✅" in capsys.readouterr().out


def test_a_heading_has_whole_paths_only_where_names_do_not_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, name in (("a", "main.json"), ("b", "main.json"), ("b", "pr.json")):
        Path(folder).mkdir(exist_ok=True)
        write(Path(folder, name), {"t": test()})
    for new, heading in (("b/pr.json", "main pr"), ("b/main.json", "a/main.json b/main.json")):
        assert main(["compare", "a/main.json", new, "--markdown"]) == 0
        out = capsys.readouterr().out.partition("\n")[0].replace("&#46;", ".")
        old, head = heading.split()
        assert out == f"## Reinplacing: <code>{old}</code> → <code>{head}</code>"


def test_no_name_means_anything_in_markdown() -> None:
    name = "a|b`<img src=x>*_[l](http://x)@me #1"
    out = markdown(compare(stored({name: test(clone())}), stored({name: test(clone(), clone())})))
    row = next(line for line in out.splitlines() if "img" in line)
    inside = row.partition("<code>")[2].partition("</code>")[0]
    assert not set(inside.replace("&#", "")) & set("|`<>*_[]@#&.")


@pytest.mark.parametrize("name", ["t.py::test_{}", "{}" + "|" * 400])
def test_markdown_fits_into_a_comment(name: str) -> None:
    old = {name.format(f"{i:05}"): test(clone()) for i in range(3000)}
    old |= {f"gone{key}": value for key, value in old.items()}
    new = {key: test(clone(), clone()) for key in old if not key.startswith("gone")}
    new |= {f"new{key}": value for key, value in new.items()}
    names = iter([key for key in old if key in new])
    new[next(names)] = test(in_place())
    new[next(names)] = test(clone(label="k.moved"))
    new[next(names)] = test(clone(reason="layout", source="/" + "f" * 5000))
    out = markdown(compare(stored(old), stored(new), [limit("clones:0")]))
    assert len(out) <= MOST_CHARACTERS
    assert "2997 tests over a limit (clones&#58;0" in out
    assert "### 2997 new clones" in out
    assert "3000 tests in both reports, 0 unchanged" in out
    assert "more" in out
