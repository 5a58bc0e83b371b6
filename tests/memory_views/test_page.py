"""The page of a call's memory, as a parser sees it."""

from __future__ import annotations

import dataclasses
import html
import re
from html.parser import HTMLParser
from typing import get_args

import pytest

pytest.importorskip("jinja2")

from pytest_reinplace.base.wording import bytes_of
from pytest_reinplace.lowered.allocation import Level, Origin, Taken
from pytest_reinplace.lowered.memory import Lowered, Memory
from pytest_reinplace.memory_views import bars
from pytest_reinplace.memory_views.drawn import Drawn, Side
from pytest_reinplace.memory_views.page import page
from pytest_reinplace.memory_views.row import KINDS, Kind, Row

from ..plugin.pages import Page
from .calls import allocation, call, program, unknown


class Elements(HTMLParser):
    """The elements of a page with their attributes, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def of(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        wanted = attributes.items()
        return [attrs for name, attrs in self.found if name == tag and wanted <= attrs.items()]


def made(*sides: Side) -> str:
    """Return the page of calls, in which nothing is wrong that is asked of every page."""
    text = page("mylib:step", sides)
    assert Page(text).problems == []
    return text


def rects(text: str) -> list[dict[str, str]]:
    return [attrs for attrs in Elements(text).of("rect") if "y" in attrs and float(attrs["y"]) > 1]


def of_kinds() -> Side:
    """Return a call with one row of each kind."""
    rows = [Row(kind, f"of {kind}", 64, 1, 3, range(1, 3)) for kind in KINDS]
    one = Drawn("[fw 0/0]", tuple(rows), (0, 384, 384, 0), lines=("a", "b", "c", "d"))
    return Side("exact", Memory(384), (one,))


@pytest.mark.parametrize("seed", range(5))
def test_the_page_is_well_formed_and_loads_nothing(seed: int) -> None:
    text = made(call(program(seed), program(seed + 9, graph="[bw 0/0]"), unknown("[bw 0/1]")))
    assert "default-src 'none'" in text
    assert "not known: C++ programs are not supported" in Page(text).text
    assert "position 3: 24 B not foreseen, left by aten::sort" in Page(text).text


def test_each_storage_has_a_bar_of_its_kind_with_a_title() -> None:
    text = made(of_kinds())
    assert [attrs["class"] for attrs in rects(text)] == list(KINDS)
    titles = [html.unescape(title) for title in re.findall(r"<title>(.*?)</title>", text)[1:]]
    assert titles == [f"of {kind}: 64 B, {words}; positions 1..3" for kind, words in KINDS.items()]


def test_each_kind_that_is_there_is_in_the_legend() -> None:
    for kind, words in KINDS.items():
        assert f"<b>{kind}</b>: {words}" in html.unescape(made(of_kinds()))
    assert "<b>copy</b>" not in made(call(program(1)))


def test_each_kind_has_a_colour_of_its_own() -> None:
    rules = re.findall(r"\.chart rect\.(\w+) { fill: var\((--\w+)\); }", made(of_kinds()))
    assert {kind for kind, _ in rules} == set(KINDS)
    assert len({colour for _, colour in rules}) == len(KINDS)


def test_bars_lie_on_one_axis_before_and_after() -> None:
    short, long = program(1, positions=10), program(1, positions=40)
    text = made(call(short, pass_name="inductor"), call(long))
    charts = Elements(text).of("svg", role="img")
    assert [chart["data-positions"] for chart in charts] == ["10", "40"]
    assert {chart["data-span"] for chart in charts} == {"40"}
    ends = [float(end) for end in re.findall(r"H([\d.]+)V[\d.]+Z", text)]
    assert ends[0] == pytest.approx(bars.LEFT + (bars.RIGHT - bars.LEFT) / 4)
    assert ends[1] == bars.RIGHT
    assert ["before: pass inductor" in Page(text).text, "after: pass exact" in Page(text).text] == [
        True,
        True,
    ]


def test_the_bytes_of_both_have_one_scale() -> None:
    levels = tuple(Level(1, "x", nbytes, nbytes, 0) for nbytes in (100, 100))
    low, high = (
        Lowered(
            "[fw 0/0]", Taken((), (), tuple(dataclasses.replace(x, highest=x.highest * by) for x in levels))
        )
        for by in (1, 2)
    )
    text = made(call(low, pass_name="inductor"), call(high))
    tops = [float(y) for y in re.findall(r'class="hull" d="M[\d. ]+H[\d.]+V([\d.]+)', text)]
    bottom = float(re.findall(r'class="hull" d="M[\d.]+ ([\d.]+)', text)[0])
    assert bottom - tops[1] == pytest.approx(2 * (bottom - tops[0]))
    assert {float(chart["data-top"]) for chart in Elements(text).of("svg", role="img")} == {tops[1]}


def test_a_program_that_one_pass_has_alone_is_said_to_be_missing() -> None:
    both = call(program(1), program(2, graph="[fw 1/0]"))
    text = made(call(program(1), pass_name="inductor"), both)
    assert Page(text).text.count("this program did not run") == 1


def test_a_frame_that_one_pass_compiled_once_more_is_the_same_program() -> None:
    text = made(call(program(1, graph="[fw 0/1]"), pass_name="inductor"), call(program(1)))
    assert "this program did not run" not in Page(text).text
    (section,) = [attrs for attrs in Elements(text).of("section") if "data-program" in attrs]
    assert section["data-program"] == "[fw 0/1] and [fw 0/0]"


def test_a_program_that_runs_twice_is_drawn_twice() -> None:
    text = made(call(program(1), program(2)), call(program(1), program(2), pass_name="inductor"))
    sections = [attrs for attrs in Elements(text).of("section") if "data-program" in attrs]
    assert [section["data-program"] for section in sections] == ["[fw 0/0]", "[fw 0/0]"]


def test_without_a_script_the_table_holds_what_is_held_at_the_peak() -> None:
    lowered = program(5)
    text = made(call(lowered))
    rows = [attrs for attrs in Elements(text).of("tr") if "data-first" in attrs]
    shown = [attrs for attrs in rows if "hidden" not in attrs]
    at = lowered.peak_at
    assert shown == [attrs for attrs in rows if int(attrs["data-first"]) <= at < int(attrs["data-end"])]
    assert 0 < len(shown) < len(rows)
    assert f"Held at the peak, position {at}: " in Page(text).text


def test_what_was_held_before_the_whole_call_is_said() -> None:
    sides = [call(program(seed)) for seed in range(20)]
    for side in sides:
        aside = side.programs[0].aside
        words = f"The measured peak counts {bytes_of(aside)} less: so much was held before the whole call"
        assert (words in Page(made(side)).text) == bool(aside)
    assert {bool(side.programs[0].aside) for side in sides} == {True, False}


def test_the_slider_has_a_label_and_begins_at_the_peak() -> None:
    lowered = program(5, positions=25)
    elements = Elements(made(call(lowered)))
    (slider,) = elements.of("input")
    assert (slider["type"], slider["min"], slider["max"]) == ("range", "0", "24")
    assert slider["value"] == str(lowered.peak_at)
    assert [attrs["for"] for attrs in elements.of("label")] == [slider["id"]]
    assert [attrs["for"] for attrs in elements.of("output")] == [slider["id"]]
    assert "hidden" in elements.of("p", **{"class": "reading"})[0]  # without a script it would do nothing


def test_the_script_is_told_what_is_live_and_which_line_runs() -> None:
    side = call(program(5))
    (chart,) = Elements(made(side)).of("svg", role="img")
    assert [int(nbytes) for nbytes in chart["data-live"].split(" ")] == list(side.programs[0].live)
    assert chart["data-lines"].split("\n") == list(side.programs[0].lines)


def test_names_do_nothing() -> None:
    evil = "<script>alert(1)</script>\x1b[31m\n"
    one = allocation(evil, origin=Origin((evil,), f"{evil}:3"))
    levels = (Level(10, evil, 64, 64, 1),)
    text = made(call(Lowered(evil, Taken((one,), (), levels)), pass_name=evil))
    assert text.count("<script>") == 1
    assert "\x1b" not in text


def test_of_very_many_storages_the_largest_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "_MOST_ROWS", 5)
    side = call(program(5))
    text = made(side)
    assert len(rects(text)) == 5
    rows = side.programs[0].rows
    assert f"The {len(rows) - 5} smallest rows are left out." in Page(text).text
    least = sorted((row.nbytes for row in rows), reverse=True)[4]
    assert all(row.nbytes >= least for row in bars.shown(side.programs[0]))


def test_of_a_very_long_program_the_lines_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "_MOST_LINES", 5)
    (chart,) = Elements(made(call(program(5)))).of("svg", role="img")
    assert chart["data-lines"] == ""
    assert len(chart["data-live"].split(" ")) == 30


def test_all_kinds_have_words() -> None:
    assert set(KINDS) == set(get_args(Kind))
