"""What measured calls held, in the three reports: figures, and in words where they differ."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_reinplace.base.fit import columns
from pytest_reinplace.reports import held, text
from pytest_reinplace.reports.markdown import MOST_CHARACTERS, markdown

from .documents import HOSTILE, call, graph, hostile_below, in_place, outcome, program, report, with_calls
from .pages import Page
from .test_marker_over_bound import HEAD
from .test_option_html import made
from .test_option_markdown import TAGS, shown
from .test_report_text import REPORTS, lines

TEST = "test_model.py::test_layer"


def measured(*calls: dict[str, Any]) -> dict[str, Any]:
    return with_calls(report({TEST: [graph(in_place())]}), *calls)


def note(*calls: dict[str, Any]) -> str:
    """Return what is said of the largest of these calls."""
    return held.calls_in(measured(*calls))[0].note


def plain(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call of a report that does not say how its peak is made up."""
    known = {key: value for key, value in call.items() if key not in ("outside", "unexplained")}
    return known | {"programs": [{**one, "peak": None} for one in call["programs"]]}


@pytest.mark.parametrize(
    ("one", "told", "is_odd"),
    [
        (call(512, program()), "", False),
        (
            call(608, program(before=32, peak=608)),
            "measured peak = 512 B that [fw 0/0] holds + 32 B held before it + 64 B that calls in it add",
            False,
        ),
        (
            call(608, program(), program(64, graph="[bw 0/0]")),
            "measured peak = 512 B that [fw 0/0] holds + 96 B unexplained",
            True,
        ),
        (
            call(500, program()),
            "measured peak = 512 B that [fw 0/0] holds, less 12 B that were not seen",
            True,
        ),
        (call(700, program(), outside=700), "measured peak = 700 B held while no program ran", False),
        (call(700, bound=0, outside=700), "no program of Inductor ran", True),
        (call(700, program(None), bound=0, outside=700), "[fw 0/0] is not known: no Python program", True),
        (
            call(700, program(None, graph="[bw 0/0]"), program()),
            "[bw 0/0] is not known: no Python program; "
            "measured peak = 512 B that [fw 0/0] holds + 188 B unexplained",
            True,
        ),
        (
            call(7, *(program(None, graph=f"[fw {i}/0]", problem="odd") for i in range(5)), bound=0),
            "[fw 0/0] is not known: odd; [fw 1/0] is not known: odd; [fw 2/0] is not known: odd; "
            "2 more programs not known",
            True,
        ),
        (plain(call(544, program())), "measured peak = 512 B that [fw 0/0] holds + 32 B besides", False),
        (plain(call(512, program())), "", False),
    ],
)
def test_it_is_said_where_figures_differ(one: dict[str, Any], told: str, is_odd: bool) -> None:
    assert note(one) == told
    assert held.calls_in(measured(one))[0].is_odd is is_odd


def test_the_static_peak_is_that_of_the_program_that_holds_most() -> None:
    # The second holds less by itself, and more with what was held before it.
    one = call(700, program(600), program(200, graph="[bw 0/0]", before=500, peak=700), bound=350)
    (found,) = held.calls_in(measured(one))
    assert found.figures == (700, 200, 350, 2.0)
    assert found.note == "measured peak = 200 B that [bw 0/0] holds + 500 B held before it"
    assert found.cells() == ["700 B", "200 B", "350 B", "2.00"]


def test_what_is_not_known_is_a_dash() -> None:
    (unknown,) = held.calls_in(measured(call(700, program(None), bound=0)))
    assert unknown.cells() == ["700 B", "-", "-", "-"]
    (nothing,) = held.calls_in(measured(call(0, program(0), bound=0)))
    assert nothing.cells() == ["0 B", "0 B", "0 B", "-"]


def test_a_test_that_measured_nothing_has_no_calls() -> None:
    assert held.calls_in(measured()) == []
    assert held.calls_in(report({"t": [graph()]})) == []


def test_the_terminal_has_a_row_for_each_call_the_largest_first() -> None:
    document = report({TEST: [graph(in_place())], "t.py::other": [graph(outcome())]})
    with_calls(document, call(512, program()), call(2048, program(1024)), test=TEST)
    with_calls(document, call(1024, program()), test="t.py::other")
    found = lines(document)
    begin = found.index("memory: 3 measured calls in 2 tests")
    assert found[begin + 1 : begin + 8] == [
        "  measured   static  bound  peak/bound  test",
        "   2.0 KiB  1.0 KiB  512 B        4.00  test_model.py::test_layer call 2",
        "      measured peak = 1024 B that [fw 0/0] holds + 1024 B unexplained",
        "   1.0 KiB    512 B  512 B        2.00  t.py::other",
        "      measured peak = 512 B that [fw 0/0] holds + 512 B unexplained",
        "     512 B    512 B  512 B        1.00  test_model.py::test_layer call 1",
        "",
    ]


def test_the_page_of_reports_shows_what_is_printed() -> None:
    layer, view = "test_model.py::test_layer", "test_model.py::test_view"
    document = report({layer: [graph()], view: [graph()]})
    calls = program(8192), program(8192, peak=24576)
    with_calls(document, *(call(one["peak"], one, bound=8192) for one in calls), test=layer)
    with_calls(document, call(2048, program(1024), bound=1024), test=view)
    found = lines(document)
    assert found.index("") == 7
    assert "\n".join(["```text", *found[:7], "```"]) in REPORTS.read_text()


def test_a_run_where_all_is_in_place_shows_it_too() -> None:
    found = text.section(measured(call(512, program())))
    assert found.title == "reinplace"
    assert found.lines[0] == [text.Part("memory: 1 measured call in 1 test", ("bold",))]
    assert found.lines[-1] == [
        text.Part("reinplace: 1 test, 1 graph, 1 candidate, all in place".replace("all ", ""), ("green",))
    ]


def test_what_is_odd_has_a_colour() -> None:
    odd, fine = call(608, program()), call(600, program(before=88, peak=600))
    section = text.section(measured(odd, fine))
    styles = [line[0].styles for line in section.lines if line and "measured peak =" in line[0].text]
    assert styles == [("yellow",), ("light",)]


def test_ten_calls_are_shown_and_the_rest_is_counted() -> None:
    document = measured(*(call(512 + i, program(512 + i)) for i in range(13)))
    found = lines(document)
    assert sum(TEST in line for line in found) == 10
    assert "  and 3 more calls; -v shows all" in found
    assert sum(f"{TEST} call" in line for line in lines(document, verbosity=1)) == 13
    assert not any("more call" in line for line in lines(document, verbosity=1))


@pytest.mark.parametrize("width", [64, 80, 140])
@pytest.mark.parametrize("verbosity", [0, 1])
def test_the_terminal_is_as_wide_as_it_is(width: int, verbosity: int) -> None:
    found = lines(hostile_below(), width, verbosity)
    assert all(line.isprintable() for line in found)
    assert max(map(columns, found)) <= width
    assert any(line.startswith("memory: 24 measured calls in 12 tests") for line in found)


def test_more_verbose_names_are_whole() -> None:
    name = f"tests/{'deeply/' * 20}test_it.py::test"
    document = with_calls(report({name: [graph()]}), call(512, program()))
    assert not any(line.endswith(f"  {name}") for line in lines(document, 80, 1))
    assert any(line.endswith(f"  {name}") for line in lines(document, 80, 2))


def test_the_comment_has_them_folded() -> None:
    found = markdown(measured(call(2048, program()), call(512, program())))
    assert "<details><summary>memory: 2 measured calls in 1 test</summary>" in found
    assert (
        "| test | measured peak | static peak | lower bound | peak / bound | where figures differ |" in found
    )
    rows = [line for line in found.splitlines() if ", call " in line]
    assert len(rows) == 2
    assert ", call 1 | 2.0 KiB (2048 B) | 512 B | 512 B | 4.00 | measured peak = 512 B that " in rows[0]
    assert ", call 2 | 512 B | 512 B | 512 B | 1.00 |  |" in rows[1]


def test_a_comment_of_any_number_of_calls_and_tests_fits_and_shows_some_of_both() -> None:
    document = report({f"{'<|>' * 90}{i}": [graph(in_place())] for i in range(1000)})
    for test in document["tests"]:
        with_calls(document, call(600, program()), test=test)
    found = markdown(document)
    assert len(found) <= MOST_CHARACTERS
    left = [int(n) for n in re.findall(r"^and (\d+) more$", found, re.M)]
    assert len(left) == 2 and all(0 < n < 1000 for n in left)


def test_hostile_names_do_nothing_in_a_comment() -> None:
    found = markdown(hostile_below(), 10**6)
    parsed = shown(found)
    assert parsed.tags <= TAGS
    assert set(parsed.rows) == {5, 6, 7}  # memory has 6, copies have 7: no name made a cell
    assert "\x1b" not in found and "\u202e" not in found


def test_the_page_has_a_table_of_them() -> None:
    found = made(measured(call(512, program()), call(2048, program(None), bound=0)))
    table = found.partition('<h2 id="memory">')[2].partition("</table>")[0]
    rows = re.findall(r'<tr data-kind="call"(.*?)</tr>', table)
    assert [re.findall(r'data-value="([^"]*)">([^<]*)<', row) for row in rows] == [
        [("2048", "2.0 KiB (2048 B)"), ("-1", "-"), ("-1", "-"), ("-1", "-")],
        [("512", "512 B"), ("512", "512 B"), ("512", "512 B"), ("1.0", "1.00")],
    ]
    assert 'data-of="t0"' in rows[0] and ", call 2</td>" in rows[0]
    assert '<td class="why-cell odd">[fw 0/0] is not known: no Python program</td>' in rows[0]
    assert '<td class="why-cell"></td>' in rows[1]


def test_many_calls_are_cut_and_the_page_says_so() -> None:
    document = report({f"{'<' * 300}{i}": [graph(outcome())] for i in range(1000)})
    for test in document["tests"]:
        with_calls(document, call(600, program()), test=test)
    found = made(document)
    assert re.search(r"The table of measured calls shows \d+ of 1000; the JSON file has them all.", found)
    assert 'data-kind="call"' in found


def test_hostile_names_are_shown_on_the_page_and_do_nothing() -> None:
    found = made(hostile_below())
    assert found.count('data-kind="call"') == 2 * len(HOSTILE)
    assert Page(found).tags.isdisjoint({"img", "iframe", "object", "embed", "base", "form"})
    assert found.count("<script") == 1
    assert "\x1b" not in found and "\u202e" not in found


def test_where_nothing_was_measured_no_report_speaks_of_memory() -> None:
    document = report({TEST: [graph(outcome())]})
    assert not any(line.startswith("memory:") for line in lines(document, verbosity=2))
    assert "memory:" not in markdown(document)
    assert 'id="memory"' not in made(document)


@pytest.mark.usefixtures("unoptimized")
def test_a_session_shows_what_its_calls_held(compiling: pytest.Pytester) -> None:
    body = "def test_it(reinplace):\n    reinplace.run(split, *inputs())\n"
    compiling.makepyfile(test_it=f"{HEAD}\n{body}")
    result = compiling.runpytest_inprocess(
        "--reinplace-backend=inductor",
        "--reinplace-memory",
        "--reinplace-report",
        "--reinplace-markdown=o.md",
        "--reinplace-html=o.html",
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "memory: 1 measured call in 1 test",
            "  measured  static  bound  peak/bound  test",
            "     544 B   544 B  512 B        1.06  test_it.py::test_it",
        ],
        consecutive=True,
    )
    assert " | 544 B | 544 B | 512 B | 1.06 |  |" in (compiling.path / "o.md").read_text()
    page = Page((compiling.path / "o.html").read_text())
    assert page.problems == []
    assert "Memory of measured calls" in page.text and "1.06" in page.text
