"""--reinplace-html."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_reinplace.base.visible import brief
from pytest_reinplace.compare.comparison import Comparison, compare
from pytest_reinplace.compare.limit import exact
from pytest_reinplace.record import stored
from pytest_reinplace.reports import template
from pytest_reinplace.reports.html.page import MOST_BYTES, page
from pytest_reinplace.reports.html.source_link import SourceLinks

from .documents import HOSTILE, blocker, graph, hostile, in_place, outcome, picture, report
from .pages import Page

pytest.importorskip("jinja2")
pytest.importorskip("pygments")

TESTS = """
import torch
from programs import *

def test_clones():
    torch.compile(keep)(*inputs(keep))

def test_in_place(assert_reinplaced):
    assert_reinplaced(call_op, *inputs(call_op))
"""
NO_LINKS = SourceLinks(Path(), None)


def made(document: dict[str, Any]) -> str:
    """Return the page of a document, which keeps what every page must."""
    text = page(document, NO_LINKS)
    assert Page(text).problems == []
    assert len(text.encode()) < MOST_BYTES
    return text


def drawn(*outcomes: dict[str, Any], **given: Any) -> dict[str, Any]:
    return graph(*outcomes, picture=picture(), **given)


def test_it_shows_tests_clones_and_graphs(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it=TESTS)
    compiling.runpytest_inprocess("--reinplace-html=new/out.html").assert_outcomes(passed=2)
    text = (compiling.path / "new/out.html").read_text()
    found = Page(text)
    assert found.problems == []
    for part in ("test_it.py::test_in_place", "the old value is still read after this write", "as decided"):
        assert part in found.text
    assert re.search(r"index_put\w*: float32\[8\] = aten\.index_put", found.text)
    (wrapper,) = re.findall(r"= (auto_functionalized_v2\(.*?)  # in place", found.text)
    assert wrapper.startswith("auto_functionalized_v2(plugintest.write.default, ")
    assert "../programs.py" in found.links


def test_a_clone_leads_to_its_line_and_that_to_what_holds_it_back() -> None:
    text = made(report({"t": [drawn(outcome(), in_place(node="mul"))]}))
    (line,) = re.findall(r'<td><a href="#(\w+)"><code>aten::index_put.self', text)
    assert re.search(rf'<span class="l clone" id="{line}"[^>]*><i[^>]*>●</i>index_put', text)
    (reader,) = re.findall(r'held back by <a href="#(\w+)"><code>sum_1', text)
    assert re.search(rf'<span class="l blocker" id="{reader}"[^>]*><i[^>]*>◆</i>sum_1', text)
    (place,) = re.findall(r'<span class="l place" [^>]*title="([^"]*)"><i[^>]*>✓</i>mul', text)
    assert place == "in place: mylib::write.out"
    assert f'<a href="#{line}"><g class="mark">' in text


def test_what_the_pass_made_is_marked_and_what_it_left_is_not() -> None:
    one = picture()
    one["after"] = [one["before"][0], {"node": "fresh", "text": "fresh = f(x)"}]
    text = made(report({"t": [graph(in_place(node="mul"), picture=one)]}))
    assert re.findall(r'<span class="l new"[^>]*><i[^>]*>\+</i>(\w+)', text) == ["fresh"]
    assert re.findall('<span class="l gone"[^>]*><i[^>]*>\N{MINUS SIGN}</i>([a-z_]+)', text)[:2] == [
        "mul",
        "index_put",
    ]
    one["before"].append({"node": "", "text": "… 9 lines left out"})  # fresh may be among them
    text = made(report({"t": [graph(in_place(node="mul"), picture=one)]}))
    assert 'class="l new"' not in text and 'class="l gone"' not in text


def test_what_the_pass_still_copies_stands_in_the_graph_after_it() -> None:
    one = picture()
    one["after"] = [*one["before"][:2], {"node": "fresh", "text": "fresh = aten.clone.default(mul)"}]
    text = made(report({"t": [graph(outcome(), picture=one)]}))
    after = text.partition("<h3>after the pass</h3>")[2]
    assert re.search(
        r'<span class="l clone"[^>]*><i[^>]*>\+</i>fresh = [^<]*</span>'
        r'<span class="why"><b>copies</b> aten::index_put.self, 32 B</span>',
        after,
    )


def test_a_clone_in_a_subgraph_is_told_and_not_taken_for_a_node_of_the_graph() -> None:
    text = made(report({"t": [drawn(outcome(graph="body_graph_0"))]}))
    assert 'class="l clone"' not in text
    assert '<p><span class="why"><b>cloned</b> <code>aten::index_put.self' in text


def test_the_same_document_gives_the_same_page() -> None:
    assert made(hostile()) == made(hostile())


def test_an_empty_session_has_a_page() -> None:
    assert "none ran torch.compile" in Page(made(report({}))).text


def test_a_graph_that_was_not_drawn_or_holds_no_memory_is_shown() -> None:
    still = picture()
    still["memory"] |= {"functional": [0] * 6, "decided": [0] * 6, "peak_functional": 0, "peak_decided": 0}
    text = made(report({"t": [graph(outcome()), graph(in_place(), picture=still, problem="cannot")]}))
    assert "This graph was not drawn." in text
    assert "[fw 0/0] could not be judged: cannot" in text
    assert "<svg" not in text


def test_hostile_names_are_shown_and_do_nothing() -> None:
    text = made(hostile())
    found = Page(text)
    for name in HOSTILE:
        assert found.text.count(brief(name)) >= 3, name
    assert found.tags.isdisjoint({"img", "iframe", "object", "embed", "base", "form"})
    assert text.count("<script") == text.count("</script>") == 1
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "49" not in re.findall(r"\{\{ (.*?) \}\}", text)


def test_only_its_own_style_and_script_may_run() -> None:
    text = made(report({"t": [drawn(outcome())]}))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; ")
    for kind in ("style", "script"):
        (content,) = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_a_large_graph_is_cut_and_says_so() -> None:
    large = picture(2000)
    large["memory"]["nodes"] = 100_000
    large["before"].append({"node": "", "text": "… 98000 lines left out"})
    text = made(report({"t": [graph(outcome(), picture=large)]}))
    assert (
        "A graph of 100000 nodes: only clones, what holds them back, and the lines around them are shown."
        in text
    )
    assert 'class="l clone"' in text
    assert len(text.encode()) < 400_000


def test_many_tests_are_cut_and_say_so() -> None:
    begun = time.process_time()
    tests = {f"test_{i}[{'<' * 60}]": [drawn(outcome(nbytes=i)), drawn(in_place())] for i in range(2000)}
    text = made(report(tests))
    assert time.process_time() - begun < 60
    notices = re.findall(r'<p class="notice">([^<]*)</p>', text)
    assert [n.split(" for ")[0] for n in notices if "graphs are" in n] != []
    assert any(re.match(r"The table of tests shows \d+ of 2000;", notice) for notice in notices)
    assert any(re.match(r"The table of clones shows \d+ of 2000;", notice) for notice in notices)
    assert "test_1999[" in text  # the largest clone


def test_many_blockers_and_clones_of_one_node_are_bounded() -> None:
    many = [outcome(f"op.x[{i}]", blockers=[blocker(f"b{j}") for j in range(500)]) for i in range(500)]
    assert "and 494 more" in made(report({"t": [drawn(*many)]}))


def test_what_is_wrong_comes_first_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("".join(f"line_{i}()\n" for i in range(1, 20)))
    wrong = {"status": "different", "text": "output 0 differs", "node": "mul (aten::mul)"}
    wrong |= {"source": "model.py:9", "stage": "", "pass": "mine:greedy"}
    unknown = {"status": "not-checked", "text": "an effect", "node": "", "source": None, "stage": ""}
    graphs = [graph(in_place(), verified=unknown), drawn(in_place(), verified=wrong), graph(problem="odd")]
    text = page(report({"t": graphs}), SourceLinks(tmp_path, tmp_path))
    assert Page(text).problems == []
    assert text.index("<h2") == text.index('<h2 id="findings">')
    assert "Compared on their first calls: 1 graph, 1 wrong, 1 not checked." in text
    first, *others = re.findall(r'<li class="finding ([\w-]+)">(.*?)</li>', text, re.DOTALL)
    assert [kind for kind, _ in others] == ["not-judged", "not-checked"]
    assert first[0] == "wrong" and "is miscompiled: on its first call output 0 differs" in first[1]
    (line,) = re.findall(r'<a href="#(\w+)"><code>mul \(aten::mul\)</code></a>', first[1])
    assert re.search(rf'<span class="l wrong" id="{line}"[^>]*><i[^>]*>✗</i>mul', text)
    assert "wrong since pass mine:greedy" in first[1]
    assert re.findall(r'<span class="l clone"[^>]*>.*?<b>(\d+)</b>(\w+)', first[1]) == [("9", "line_9")]
    assert "line_13" not in first[1] and "line_12" in first[1]


def test_where_nothing_is_found_it_says_how_many_were_checked() -> None:
    same = {"status": "same", "text": "", "node": "", "source": None, "stage": ""}
    assert "Compared on their first calls: 1 graph, 0 wrong" in made(
        report({"t": [graph(in_place(), verified=same)]})
    )
    assert 'id="findings"' not in made(report({"t": [graph(in_place())]}))


def test_many_findings_are_counted() -> None:
    graphs = [graph(in_place(), problem=f"odd {'x' * 1000} {i}") for i in range(30)]
    text = made(report({"t": graphs}))
    assert text.count('<li class="finding not-judged">') == 20
    assert "and 10 more; the JSON file has them all" in text


def test_bytes_are_areas_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("first()\n\nsecond()\n")
    clones = [outcome(nbytes=size, source=source) for size, source in ((60, "a.py:3"), (20, "a.py:1"))]
    clones += [outcome(nbytes=10, source="a.py:1", reason="escapes"), outcome(nbytes=10, source=None)]
    text = page(report({"t": [graph(*clones)]}), SourceLinks(tmp_path, tmp_path))
    assert Page(text).problems == []
    boxes = re.findall(r'<li id="(\w+)"><a href="#(\w+)" data-source="\2" title="([^"]*)">', text)
    assert [title for _, _, title in boxes] == [
        "a.py:3: 60 B in 1 clone",
        "a.py:1: 30 B in 2 clones",
        "line not known: 10 B in 1 clone",
    ]
    rules = {name: re.findall(r":([\d.]+)%", rule) for name, rule in re.findall(r"#(f\w+){(.*?)}", text)}
    areas = {name: float(rule[2]) * float(rule[3]) / 1e4 for name, rule in rules.items()}
    shares = [areas[box.partition("c")[0]] * areas[box] for box, _, _ in boxes]
    assert shares == [pytest.approx(share, abs=1e-3) for share in (0.6, 0.3, 0.1)]
    section = text.partition('<details id="s1"')[2].partition("</details>")[0]
    assert "30 B</b> in 2 clones" in section and section.count("in 1 clone, in 1 test") == 2
    assert re.findall(r'<span class="l clone"[^>]*>.*?<b>1</b>(\w+)', section) == ["first"]
    assert re.findall(r"<b>3</b>(\w+)", section) == ["second"]


def test_small_lines_are_put_into_one_box() -> None:
    clones = [outcome(nbytes=1000 - i, source=f"a.py:{i}") for i in range(1, 60)]
    text = made(report({"t": [graph(*clones)]}))
    assert text.count('data-source="s') == 40
    assert "<b>19 more lines</b>" in text
    assert text.count('data-kind="line"') == 59
    assert 'data-source="s' not in made(report({"t": [graph(outcome(nbytes=0))]}))


def test_one_of_each_is_told_in_the_singular() -> None:
    text = made(report({"t": [graph(outcome())]}))
    assert re.findall(r"<dt>(.*?)</dt>", text) == [
        "test",
        "graph",
        "candidate",
        "in place",
        "cloned",
        "bytes cloned",
    ]
    assert "1 candidate, 0 in place, 1 cloned" in Page(text).text
    two = made(report({"t": [graph(outcome(), outcome())], "u": [graph()]}))
    assert re.findall(r"<dt>(.*?)</dt>", two)[:3] == ["tests", "graphs", "candidates"]


def against(old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    return compare(stored.parse(old, "main.json"), stored.parse(new, "this run"), exact())


def test_an_older_report_is_compared_with() -> None:
    old = report({"t": [graph(outcome())], "gone": [graph()]})
    new = report({"t": [graph(outcome(), outcome("mylib::scale.x", nbytes=512))]})
    text = page(new, NO_LINKS, against(old, new))
    assert Page(text).problems == []
    section = text.partition('<section aria-labelledby="compared">')[2].partition("</section>")[0]
    assert "main.json" in section and "1 test over a limit" in section
    assert "new clone mylib::scale.x at model.py:7: 512 B" in section
    assert re.search(r'<td><a href="#t0"><code>t</code></a></td><td class="failed">1 → 2</td>', section)
    assert re.search(r"<h3>1 removed test, not compared</h3>\s*<ul[^>]*><li><code>gone</code></li>", section)
    assert 'id="compared"' not in made(new)


def test_a_comparison_of_any_size_fits() -> None:
    names = [f"{'<&' * 300}{i}" for i in range(500)]
    old = report({name: [graph()] for name in names})
    new = report({name: [graph(outcome(name, source=f"{name}.py:1"))] for name in names})
    text = page(new, NO_LINKS, against(old, new))
    assert len(text.encode()) < MOST_BYTES
    assert Page(text).problems == []
    assert "over a limit" in text and re.search(r"and \d+ more", text)


def test_a_session_shows_what_it_was_compared_with(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it=TESTS)
    compiling.runpytest_inprocess("--reinplace-json=old.json").assert_outcomes(passed=2)
    compiling.makepyfile(
        test_it=TESTS.replace("compile(keep)(*inputs(keep))", "compile(call_op)(*inputs(call_op))")
    )
    result = compiling.runpytest_inprocess("--reinplace-compare=old.json", "--reinplace-html=out.html")
    result.assert_outcomes(passed=2)
    text = Page((compiling.path / "out.html").read_text()).text
    assert re.search(r"Compared with \S*old.json", text)
    assert "1 clone gone" in text


def test_sources_are_linked_where_there_are_any(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a b:c#.py").write_text("")
    links = SourceLinks(tmp_path, tmp_path / "out")
    assert links.href("src/a b:c#.py:3") == "../src/a%20b%3Ac%23.py"
    assert links.href(f"{tmp_path}/src/a b:c#.py:3") == "../src/a%20b%3Ac%23.py"
    for source in ("", "src/gone.py:3", "src:1", "javascript:alert(1)", "a\0b:3", "x" * 9999 + ":1"):
        assert links.href(source) is None
    assert NO_LINKS.href("src/a b:c#.py:3") is None


def test_a_missing_package_stops_before_the_first_test(
    compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template, "_PACKAGES", ("jinja2", "no_such_package"))
    compiling.makepyfile("def test_it(): raise SystemExit('ran')")
    result = compiling.runpytest_inprocess("--reinplace-html=out.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --reinplace-html: needs no_such_package: pip install no_such_package"]
    )
    compiling.makepyfile("def test_it(): pass")
    assert compiling.runpytest_inprocess("--reinplace-json=out.json").ret == pytest.ExitCode.OK


def test_without_it_neither_package_is_imported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\n\ndef test_it(): assert 'jinja2' not in sys.modules")
    pytester.runpytest_subprocess("--reinplace-json=out.json").assert_outcomes(passed=1)


def test_a_path_that_cannot_be_written_stops_before_the_first_test(compiling: pytest.Pytester) -> None:
    compiling.makepyfile("def test_it(): raise SystemExit('ran')")
    (compiling.path / "folder").mkdir()
    result = compiling.runpytest_inprocess("--reinplace-html=folder")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --reinplace-html: cannot write *folder: it is a directory"])


def test_an_interrupted_session_writes_every_report(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(test_it=TESTS + "\n\ndef test_stop():\n    raise KeyboardInterrupt\n")
    options = [f"--reinplace-{kind}=out.{kind}" for kind in ("json", "markdown", "html")]
    result = compiling.runpytest_inprocess(*options, no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    for kind in ("json", "markdown", "html"):
        assert "test_clones" in (compiling.path / f"out.{kind}").read_text().replace("&#95;", "_")
