"""--reinplace-markdown."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from pytest_reinplace.base.visible import visible
from pytest_reinplace.reports.markdown import MOST_CHARACTERS, markdown

from .documents import HOSTILE, graph, hostile, in_place, outcome, report

TESTS = """
import torch
from programs import *

def test_clones():
    torch.compile(keep)(*inputs(keep))

def test_in_place(assert_reinplaced):
    assert_reinplaced(call_op, *inputs(call_op))
"""

# What the report itself is made of.
TAGS = {"h2", "h3", "table", "thead", "tbody", "tr", "th", "td", "code", "sub", "p", "br"}
TAGS |= {"details", "summary", "ul", "li"}


class Shown(HTMLParser):
    """The tags of a page, the texts of its code elements, and the cells of each row."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: list[str] = []
        self.rows: list[int] = []
        self._in_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "code":
            self._in_code = True
            self.names.append("")
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += 1

    def handle_endtag(self, tag: str) -> None:
        self._in_code = self._in_code and tag != "code"

    def handle_data(self, data: str) -> None:
        if self._in_code:
            self.names[-1] += data


def shown(text: str) -> Shown:
    """Return what a reader of Markdown makes of a text."""
    markdown_it = pytest.importorskip("markdown_it")
    found = Shown()
    found.feed(markdown_it.MarkdownIt("commonmark").enable("table").render(text))
    return found


def test_it_holds_totals_and_clones_with_their_reasons(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it=TESTS)
    compiling.runpytest_inprocess("--reinplace-markdown=new/out.md").assert_outcomes(passed=2)
    text = (compiling.path / "new/out.md").read_text()
    assert "| 2 | 2 | 2 | 1 | 1 | 32 B |" in text
    assert "### Clones by line and reason\n" in text
    assert "the old value is still read after this write; held back by <code>sum" in text
    names = shown(text).names
    assert names[0] == "aten::index_put.self"
    assert names[1].startswith("programs.py:")
    assert {"test_it.py::test_clones", "test_it.py::test_in_place"} <= set(names)


def test_a_session_that_compiles_nothing_says_so(compiling: pytest.Pytester) -> None:
    compiling.makepyfile("def test_nothing(): pass")
    compiling.runpytest_inprocess("--reinplace-markdown=out.md")
    assert "No test was captured" in (compiling.path / "out.md").read_text()


def test_hostile_names_are_shown_and_do_nothing() -> None:
    text = markdown(hostile())
    found = shown(text)
    assert found.tags <= TAGS
    for name in HOSTILE:
        assert visible(name, 300) in found.names
    assert set(found.rows) == {5, 6, 7}  # clones, totals, tests: no name made a cell
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.encode()


def test_the_ten_largest_are_on_top_and_the_rest_is_folded() -> None:
    clones = [outcome(f"mylib::op{i}.x", nbytes=i, source=f"model.py:{i}") for i in range(1, 13)]
    text = markdown(report({"t": [graph(*clones)]}))
    top, _, folded = text.partition("<details>")
    assert "### Clones by line and reason: 10 of 12" in top
    assert [name for name in shown(top).names if "op" in name and "aten" not in name] == [
        f"mylib::op{i}.x" for i in range(12, 2, -1)
    ]
    assert [f"mylib::op{i}.x" in shown(folded).names for i in (1, 2)] == [True, True]


def test_a_hint_stands_once_for_each_line_and_reason() -> None:
    layers = [outcome(nbytes=i, source=f"model.py:{i % 12}", hint=f"hint {i % 12}") for i in range(48)]
    text = markdown(report({"t": [graph(*layers[:24])], "u": [graph(*layers[24:])]}))
    top, _, folded = text.partition("<details><summary>48 clones")
    assert sorted(re.findall(r"hint: (hint \d+)", text)) == sorted(f"hint {i}" for i in range(12))
    assert top.count("hint: ") == 10
    assert "| 116 B | 4\N{MULTIPLICATION SIGN} | <code>model&#46;py&#58;11</code> |" in top
    assert "| 2 tests |" in top
    assert len([line for line in folded.splitlines() if line.startswith("| <code>aten")]) == 48


def test_no_clone_no_list_of_them() -> None:
    text = markdown(report({"t": [graph(in_place())]}))
    assert "Clones by line" not in text


def test_a_graph_that_was_not_judged_is_said() -> None:
    bad = graph(in_place(), problem="cannot", suspicious=["mylib::write.out"])
    names = shown(markdown(report({"t": [bad], "u": [graph(in_place())]}))).names
    assert "[fw 0/0] could not be judged: cannot" in names
    assert any(name.startswith("[fw 0/0] may be miscompiled: mylib::write.out in place") for name in names)
    assert "Findings" not in markdown(report({"u": [graph(in_place())]}))


def test_what_the_verifier_found_comes_before_the_clones() -> None:
    wrong = {"status": "different", "text": "output 0 differs", "node": "mul (aten::mul)", "source": "m.py:9"}
    wrong |= {"stage": "reinplace", "pass": ""}
    unknown = {"status": "not-checked", "text": "an effect", "node": "", "source": None, "stage": ""}
    graphs = [graph(outcome(), verified=unknown), graph(in_place(), verified=wrong)]
    text = markdown(report({"t": graphs}))
    assert text.index("### Findings") < text.index("### Clones by line")
    assert "Compared on their first calls: 1 graph, 1 wrong, 1 not checked." in text
    assert [name for name in shown(text).names if name.startswith("[fw")] == [
        "[fw 0/0] is miscompiled: on its first call output 0 differs; first node that differs: "
        "mul (aten::mul) at m.py:9; wrong since Inductor's stage reinplace",
        "[fw 0/0] was not checked: an effect",
    ]
    same = {"status": "same", "text": "", "node": "", "source": None, "stage": ""}
    assert "1 graph, 0 wrong" in markdown(report({"t": [graph(in_place(), verified=same)]}))


def test_it_fits_a_comment_however_many_tests_there_are() -> None:
    tests = {f"tests/test_{i}.py::test[{'<|>' * 90}]": [graph(outcome(nbytes=i))] for i in range(3000)}
    text = markdown(report(tests))
    assert len(text) <= MOST_CHARACTERS
    assert text.count("<details>") == text.count("</details>") == 2
    left = [int(line.split()[1]) for line in text.splitlines() if line.startswith("and ")]
    assert len(left) == 2
    assert all(0 < count < 3000 for count in left)
    assert "tests/test&#95;2999&#46;py" in text


def test_the_summary_of_a_step_is_added_to(
    compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compiling.path / "summary.md"
    path.write_text("before\n")
    compiling.makepyfile(test_it=TESTS)
    compiling.runpytest_inprocess(f"--reinplace-markdown={path}")
    assert path.read_text().startswith("## Reinplacing")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    once = path.read_text()
    compiling.runpytest_inprocess(f"--reinplace-markdown={path}")
    assert path.read_text() == once * 2


def test_a_path_that_cannot_be_written_stops_before_the_first_test(compiling: pytest.Pytester) -> None:
    (compiling.path / "file").write_text("")
    compiling.makepyfile("def test_it(): raise SystemExit('ran')")
    result = compiling.runpytest_inprocess("--reinplace-markdown=file/out.md")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --reinplace-markdown: cannot write *file/out.md: *"])


def test_two_reports_in_one_file_are_refused(compiling: pytest.Pytester) -> None:
    result = compiling.runpytest_inprocess("--reinplace-json=x", "--reinplace-markdown=./x")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --reinplace-markdown: *x is written by --reinplace-json; give*"])
