"""The copies that lowering adds, on the page; and what the page says where there are no clones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_reinplace.base.visible import brief
from pytest_reinplace.reports.html.page import page
from pytest_reinplace.reports.html.source_link import SourceLinks
from pytest_reinplace.reports.text import section

from .documents import (
    HOSTILE,
    added,
    call,
    graph,
    hostile_below,
    in_place,
    outcome,
    picture,
    program,
    report,
    with_calls,
)
from .pages import Page
from .test_option_html import made


def rows(text: str) -> list[tuple[dict[str, str], list[str]]]:
    """Return the attributes and the cells of each row of copies."""
    found = re.findall(r'<tr (data-kind="copy"[^>]*)>(.*?)</tr>', text)
    return [
        (dict(re.findall(r'([\w-]+)="([^"]*)"', attributes)), re.findall(r"<td[^>]*>(.*?)</td>", cells))
        for attributes, cells in found
    ]


def sums(text: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text))


def test_they_stand_after_the_clones_the_largest_first(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("")
    copies = [added(nbytes=100), added(nbytes=156), added("aten::cat.output", 512, cause="concat", hint="")]
    meant = added("aten::clone.self", meant=True)
    document = report({"a": [graph(outcome(), copies=[*copies, meant])], "b": [graph(copies=[added()])]})
    text = page(document, SourceLinks(tmp_path, tmp_path))
    assert Page(text).problems == []
    heads = re.findall(r'<h2 id="(\w+)"', text)
    assert heads[heads.index("clones") + 1 : heads.index("tests")] == ["copies"]
    (same, first), (cat, second) = rows(text)
    assert re.sub("<.*?>", "", " | ".join(first)) == (
        "aten::mm.self | 512 B | 3\N{MULTIPLICATION SIGN} | strides | model.py:4 | "
        "aten::mm asks for other strideshint: make it contiguous before | 2 tests"
    )
    assert first[4] == '<a href="model.py"><code>model.py:4</code></a>'
    assert first[0].startswith('<a href="#g0">')
    assert re.sub("<.*?>", "", second[-1]) == "a"
    assert (same["data-count"], same["data-of"].split()) == ("3", ["g0", "g1", "t0", "t1"])
    assert (cat["data-count"], cat["data-of"].split()) == ("1", ["g0", "t0"])
    assert "a b" in same["data-text"] and "data-text" not in cat
    assert "aten::clone.self" not in text


def test_the_line_of_a_clone_shows_its_copies_too() -> None:
    copies = [added(source="model.py:7"), added("aten::cat.output"), added("aten::bmm.self", source=None)]
    clones = [outcome(), outcome(source=None)]
    found = {
        one[0]: of["data-sources"] for of, one in rows(made(report({"t": [graph(*clones, copies=copies)]})))
    }
    assert sorted(found.values()) == ["", "", "s0"]
    assert [label for label, source in found.items() if source] == [
        '<a href="#g0"><code>aten::mm.self</code></a>'
    ]


@pytest.mark.parametrize(("outcomes", "told"), [(["passed", "failed"], "failed"), (["passed"] * 2, "passed")])
def test_copies_of_a_failed_test_are_of_failed_tests(outcomes: list[str], told: str) -> None:
    document = report({name: [graph(copies=[added()])] for name in "ab"})
    for data, result in zip(document["tests"].values(), outcomes, strict=True):
        data["outcome"] = result
    ((attributes, _),) = rows(made(document))
    assert attributes["data-outcome"] == told
    assert attributes["data-clones"] == "0"


def test_a_page_without_clones_names_the_copies() -> None:
    copies = [added(nbytes=4096), added("aten::cat.output", 1024)]
    text = made(report({"t": [graph(in_place(), copies=copies)]}))
    assert sums(text) == {
        "test": "1",
        "graph": "1",
        "candidate": "1",
        "in place": "1",
        "cloned": "0",
        "bytes cloned": "0 B",
        "copied by lowering": "2",
        "bytes copied by lowering": "5.0 KiB (5120 B)",
    }
    assert text.count('The pass left no clone. <a href="#copies">Lowering adds 2 copies.</a>') == 2
    assert "Nothing was" not in text
    # as the terminal has it
    (title,) = section(report({"t": [graph(copies=copies)]})).lines[0]
    assert title.text == "lowering adds 2 copies: 5.0 KiB (5120 B) in 1 test"


def test_a_page_without_copies_speaks_of_none() -> None:
    for copies in (None, [], [added(meant=True)]):
        text = made(report({"t": [graph(in_place(), copies=copies)]}))
        assert (
            'id="copies"' not in text
            and "owering" not in text.partition("</script>")[0].partition("<body>")[2]
        )
        assert text.count("The pass left no clone.</p>") == 2
    assert "left no clone" not in made(report({"t": [graph(outcome(), copies=[added()])]}))


def test_many_copies_are_cut_and_the_page_says_so() -> None:
    copies = [added(f"mylib::{'<' * 250}{i}.x", i + 1, source=f"m.py:{i}") for i in range(1000)]
    text = made(report({"t": [graph(outcome(), copies=copies)]}))
    shown = rows(text)
    assert 20 < len(shown) < 1000
    assert f"The table of copies that lowering adds shows {len(shown)} of 1000; the JSON file" in text
    assert ">1000 B<" in shown[0][1][1] or shown[0][1][1] == "1000 B"
    assert sums(text)["copied by lowering"] == "1000"


def test_a_copy_of_any_number_of_tests_fits() -> None:
    document: dict[str, Any] = report({f"t{i}": [graph(copies=[added(nbytes=1)])] for i in range(3000)})
    ((attributes, cells),) = rows(made(document))
    assert len(attributes["data-of"].split()) <= 1000
    assert cells[-1] == "3000 tests"


def test_a_page_with_too_much_of_everything_is_small_enough() -> None:
    names = [f"{'<&' * 200}{i}" for i in range(1200)]
    given = {"source": "<&" * 200 + ".py:1", "hint": "<&" * 200}
    tests = {
        name: [
            graph(outcome(f"{name}.x", **given), copies=[added(f"{name}.y", **given)], picture=picture(60))
        ]
        for name in names
    }
    document = report(tests)
    for name in names:
        with_calls(document, call(600, program(graph=name)), test=name)
    text = made(document)  # less than the most
    assert len(text.encode()) > 1_000_000
    cut = re.findall(r"The table of ([\w ]+) shows (\d+) of 1200", text)
    assert [what for what, _ in cut] == ["copies that lowering adds", "measured calls", "clones", "tests"]
    assert all(int(shown) > 10 for _, shown in cut)


def test_a_cause_of_a_newer_version_is_an_unknown_one() -> None:
    ((_, cells),) = rows(made(report({"t": [graph(copies=[added(cause="<news>")])]})))
    assert cells[3] == "&lt;news&gt;"
    assert cells[5].startswith("why is not known")


def test_hostile_names_are_shown_and_do_nothing() -> None:
    text = made(hostile_below())
    found = Page(text)
    assert len(rows(text)) == len(HOSTILE)
    section = Page(text.partition('<h2 id="copies">')[2].partition("</table>")[0]).text
    for name in HOSTILE:
        assert brief(name) in section, name
    assert found.tags.isdisjoint({"img", "iframe", "object", "embed", "base", "form"})
    assert text.count("<script") == 1
    assert "\x1b" not in text and "\u202e" not in text
