"""The page in a browser: it renders, filters, sorts, is reached by keyboard, and the console stays empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_reinplace.compare.comparison import Comparison, compare
from pytest_reinplace.compare.limit import exact
from pytest_reinplace.record import stored
from pytest_reinplace.reports.html.page import page
from pytest_reinplace.reports.html.source_link import SourceLinks

from .documents import (
    added,
    call,
    graph,
    hostile,
    hostile_below,
    in_place,
    outcome,
    picture,
    program,
    report,
    with_calls,
)

pytest.importorskip("jinja2")

# How much darker or lighter a text is than the nearest ground below it, as WCAG counts.
CONTRAST = """
(selector) => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const found = numbers(getComputedStyle(e).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
  };
  return [...document.querySelectorAll(selector)].map((e) => {
    const two = [light(numbers(getComputedStyle(e).color)), light(ground(e))].sort((a, b) => a - b);
    return (two[1] + 0.05) / (two[0] + 0.05);
  });
}
"""

TEXTS = ["p", "td", "th", "a", "code", "dd", "dt", "summary", ".l", ".l > i", ".l span", ".why", ".why b"]


class Tab:
    """A page that is shown, and all that it said to the console, loaded or popped up."""

    def __init__(
        self,
        browser: Any,
        folder: Path,
        document: dict[str, Any],
        scheme: str = "light",
        width: int = 1000,
        comparison: Comparison | None = None,
    ) -> None:
        path = folder / "page.html"
        path.write_text(page(document, SourceLinks(folder, folder), comparison))
        self.said: list[str] = []
        self.tab = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 700})
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.tab.on("request", lambda request: self.said.append(request.url))
        self.tab.goto(path.as_uri())
        assert self.said.pop(0) == path.as_uri()

    def visible(self, selector: str) -> list[str]:
        return [e.inner_text() for e in self.tab.locator(selector).all() if e.is_visible()]

    def focused(self) -> str:
        return str(self.tab.evaluate("document.activeElement.id || document.activeElement.textContent"))


def several() -> dict[str, Any]:
    """Return three tests: a large clone, a small one in a failed test, and none."""
    tests = {
        "test_a.py::large": [graph(outcome(nbytes=4096), in_place(node="mul"), picture=picture())],
        "test_b.py::small": [graph(outcome("mylib::scale.x", nbytes=512), picture=picture())],
        "test_c.py::none": [graph(in_place(), picture=picture())],
    }
    made = report(tests)
    made["tests"]["test_b.py::small"]["outcome"] = "failed"
    return made


def many() -> dict[str, Any]:
    """Return two tests with clones of three lines, the largest first."""
    sizes = {"a.py:22": 2000, "a.py:2": 1000, "b.py:2": 500}
    clones = [outcome(nbytes=size, source=source) for source, size in sizes.items()]
    return report({"t": [graph(clones[0], clones[2])], "u": [graph(clones[1], picture=picture())]})


def found() -> dict[str, Any]:
    """Return what has every part of a page: clones of several lines and files, and findings of each kind."""
    wrong = {"status": "different", "text": "output 0 differs", "node": "mul (aten::mul)"}
    wrong |= {"source": "model.py:9", "stage": "reinplace"}
    unknown = {"status": "not-checked", "text": "an effect", "node": "", "source": None, "stage": ""}
    made = many()["tests"]["t"]["graphs"] + several()["tests"]["test_b.py::small"]["graphs"]
    odd = [graph(in_place(), picture=picture(), verified=wrong), graph(in_place(), verified=unknown)]
    whole = report({"test_b.py::small": made, "u": [*odd, graph(problem="odd", copies=[added()])]})
    return with_calls(whole, call(600, program()), call(7, program(None), bound=0), test="u")


def below() -> dict[str, Any]:
    """Return two tests without a clone: one has copies that lowering adds, the other measured calls."""
    copies = [added(nbytes=4096), added("aten::cat.output", 512, cause="concat"), added(nbytes=64)]
    made = report({"test_a.py::copied": [graph(in_place(), copies=copies)], "test_b.py::held": [graph()]})
    made["tests"]["test_b.py::held"]["outcome"] = "failed"
    return with_calls(made, call(900, program()), call(1024, program(1024)), test="test_b.py::held")


def against(old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    return compare(stored.parse(old, "main.json"), stored.parse(new, "this run"), exact())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(browser: Any, tmp_path: Path, scheme: str) -> None:
    shown = Tab(browser, tmp_path, several(), scheme)
    shown.tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for selector in TEXTS:
        ratios = shown.tab.evaluate(CONTRAST, selector)
        assert ratios, selector
        assert min(ratios) >= 4.5, selector
    assert shown.tab.locator("svg.chart").first.bounding_box()["height"] > 100
    assert shown.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.said == []


def test_a_long_name_of_what_is_held_is_not_wider_than_a_phone(browser: Any, tmp_path: Path) -> None:
    long = picture(clone="_scaled_dot_product_flash_attention_for_cpu_backward_1")
    shown = Tab(browser, tmp_path, report({"t": [graph(outcome(), picture=long)]}), width=390)
    shown.tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert shown.visible("ul.held li")[0].startswith("_scaled_dot_product")
    assert shown.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


# The last character of each line that a text is broken into.
LINE_ENDS = """
(selector) => [...document.querySelectorAll(selector)].flatMap((e) => {
  const walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), found = [];
  let above = null, last = "";
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    for (let i = 0; i < text.length; i++) {
      const range = document.createRange();
      range.setStart(text, i);
      range.setEnd(text, i + 1);
      const top = range.getBoundingClientRect().top;
      if (above !== null && top > above + 2) found.push(last);
      above = top;
      last = text.data[i];
    }
  }
  return found;
})
"""


def test_ids_of_tests_are_broken_between_their_words(browser: Any, tmp_path: Path) -> None:
    name = "tests/models/test_decoder.py::TestDecoder::test_a_written_cache_is_in_place[llama]"
    shown = Tab(
        browser, tmp_path, report({name: [graph(outcome(nbytes=4096), picture=picture())]}), width=900
    )
    for selector in ("td.test", "tr[data-kind=test] td:first-child"):
        ends = shown.tab.evaluate(LINE_ENDS, selector)
        assert ends and set(ends) <= {":", "/", "_"}
    assert shown.tab.locator("td.test").inner_text() == name  # what is copied has no break


def test_it_filters(browser: Any, tmp_path: Path) -> None:
    shown = Tab(browser, tmp_path, several())
    assert shown.visible("#count") == ["3 tests, 1 line, 2 clones, 3 graphs shown"]
    shown.tab.get_by_label("Filter").fill("SCALE test_b")
    # what belongs to a clone that is shown is shown, although nothing in it is called so
    assert shown.visible("#count") == ["1 of 3 tests, 1 line, 1 of 2 clones, 1 of 3 graphs shown"]
    assert shown.visible("tr[data-kind=test] td:first-child") == ["test_b.py::small"]
    assert shown.visible("tr[data-kind=clone] td:first-child") == ["mylib::scale.x"]
    shown.tab.get_by_label("Filter").fill("")
    shown.tab.get_by_label("Show").select_option("clones")
    assert shown.visible("tr[data-kind=test] td:first-child") == ["test_a.py::large", "test_b.py::small"]
    shown.tab.get_by_label("Show").select_option("failed")
    assert shown.visible("#count") == ["1 of 3 tests, 1 line, 1 of 2 clones, 1 of 3 graphs shown"]
    shown.tab.get_by_label("Filter").fill("nothing is called so")
    assert shown.visible("#count") == ["0 of 3 tests, 0 of 1 line, 0 of 2 clones, 0 of 3 graphs shown"]
    assert shown.said == []


def test_it_filters_and_sorts_copies_and_calls(browser: Any, tmp_path: Path) -> None:
    shown = Tab(browser, tmp_path, below())
    assert shown.visible("#count") == ["2 tests, 3 copies, 2 calls, 2 graphs shown"]
    shown.tab.get_by_label("Filter").fill("concat")
    # its test and its graph are shown, too
    assert shown.visible("#count") == ["1 of 2 tests, 1 of 3 copies, 0 of 2 calls, 1 of 2 graphs shown"]
    shown.tab.get_by_label("Filter").fill("unexplained")
    assert shown.visible("tr[data-kind=call] td:first-child") == ["test_b.py::held, call 1"]
    assert shown.visible("tr[data-kind=test] td:first-child") == ["test_b.py::held"]
    shown.tab.get_by_label("Filter").fill("")
    shown.tab.get_by_label("Show").select_option("failed")
    assert shown.visible("#count") == ["1 of 2 tests, 0 of 3 copies, 2 calls, 1 of 2 graphs shown"]
    shown.tab.get_by_label("Show").select_option("clones")
    assert shown.visible("#count") == ["0 of 2 tests, 0 of 3 copies, 0 of 2 calls, 0 of 2 graphs shown"]
    shown.tab.get_by_label("Show").select_option("all")
    shown.tab.get_by_role("button", name="peak / bound").click()
    ratios = "tr[data-kind=call] td:nth-child(5)"
    assert shown.visible(ratios) == ["1.76", "2.00"]
    shown.tab.get_by_role("button", name="peak / bound").click()
    assert shown.visible(ratios) == ["2.00", "1.76"]
    assert shown.said == []


@pytest.mark.parametrize("width", [1280, 390])
def test_copies_and_calls_are_not_wider_than_the_window(browser: Any, tmp_path: Path, width: int) -> None:
    shown = Tab(browser, tmp_path, hostile_below(), width=width)
    assert shown.tab.locator("tr[data-kind=copy]").count() == 12
    assert shown.tab.locator("tr[data-kind=call]").count() == 24
    assert shown.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.said == []


def test_a_box_shows_its_line_alone_by_keyboard(browser: Any, tmp_path: Path) -> None:
    shown = Tab(browser, tmp_path, many())
    shown.tab.locator("a[data-source]").first.focus()
    shown.tab.keyboard.press("Tab")
    shown.tab.keyboard.press("Enter")
    shown.tab.wait_for_function("document.activeElement.matches('summary')")
    assert shown.focused().startswith("a.py:2 1000 B in 1 clone")
    assert shown.visible("#count") == ["1 of 2 tests, 1 of 3 lines, 1 of 3 clones, 1 of 2 graphs shown"]
    assert shown.visible("tr[data-kind=clone] td.where") == ["a.py:2"]  # and not a.py:22
    assert shown.tab.locator("a[data-source][aria-current=true]").count() == 1
    assert shown.tab.locator("a[data-source].out").count() == 2
    button = shown.tab.get_by_role("button", name="only a.py:2; show all again")
    button.focus()
    shown.tab.keyboard.press("Enter")
    assert shown.visible("#count") == ["2 tests, 3 lines, 3 clones, 2 graphs shown"]
    assert not button.is_visible()
    assert shown.tab.evaluate("document.activeElement.dataset.source") == "s1"
    assert shown.said == []


def test_the_chart_is_read_by_slider_and_by_pointing(browser: Any, tmp_path: Path) -> None:
    shown = Tab(browser, tmp_path, several())
    shown.tab.locator("details[data-kind=graph] summary").first.click()
    output = shown.tab.locator("details[open] output")
    slider = shown.tab.get_by_role("slider", name="at node").first
    assert output.inner_text().startswith(
        "node 4: 64 B as decided, 128 B with every candidate copied"
    )  # the peak
    slider.focus()
    shown.tab.keyboard.press("ArrowLeft")
    assert output.inner_text() == (
        "node 3: 48 B as decided, 96 B with every candidate copied"
        " — sum_1: float32[8] = aten.neg.default(sum_1)"
    )
    assert slider.get_attribute("aria-valuetext") == output.inner_text()
    box = shown.tab.locator("details[open] svg[data-step]").bounding_box()
    shown.tab.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    assert output.inner_text().startswith("node 1: 16 B as decided, 32 B")
    assert slider.input_value() == "1"
    assert shown.said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("document", [True, False], ids=["with clones", "empty"])
def test_axe_finds_nothing(browser: Any, tmp_path: Path, width: int, scheme: str, document: bool) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    (tmp_path / "model.py").write_text("".join(f"line_{i}()\n" for i in range(1, 20)))
    made = found() if document else report({})
    shown = Tab(browser, tmp_path, made, scheme, width, against(several(), made) if document else None)
    # Rules of WCAG that axe-core does not run unasked: targets of 24 pixels.
    options = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
    states = [None, "document.querySelectorAll('details').forEach((d) => { d.open = true; })"]
    for state in states + (["document.querySelector('[data-source=s1]').click()"] if document else []):
        if state:
            shown.tab.evaluate(state)
        result = axe.run(shown.tab, options=options)
        assert len(result.response["passes"]) > 10
        assert result.violations_count == 0, result.generate_report()
    assert shown.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_axe_would_find_what_is_wrong(browser: Any, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    shown = Tab(browser, tmp_path, several())
    shown.tab.evaluate("document.documentElement.removeAttribute('lang')")
    assert "html-has-lang" in [one["id"] for one in axe.run(shown.tab).response["violations"]]


def test_it_sorts_by_keyboard(browser: Any, tmp_path: Path) -> None:
    shown = Tab(browser, tmp_path, several())
    head = shown.tab.get_by_role("button", name="bytes").first
    head.focus()
    first = "tr[data-kind=clone] td:first-child"
    assert shown.visible(first) == ["aten::index_put.self", "mylib::scale.x"]
    shown.tab.keyboard.press("Enter")
    assert shown.visible(first) == ["mylib::scale.x", "aten::index_put.self"]
    assert shown.tab.locator("th[aria-sort=ascending]").count() == 1
    shown.tab.keyboard.press("Space")
    assert shown.visible(first) == ["aten::index_put.self", "mylib::scale.x"]
    assert shown.tab.locator("th[aria-sort=descending]").inner_text().startswith("bytes")
    shown.tab.get_by_role("button", name="where").click()
    assert shown.tab.locator("th[aria-sort]").count() == 1
    assert shown.said == []


def test_a_clone_is_followed_to_what_holds_it_back_by_keyboard(browser: Any, tmp_path: Path) -> None:
    shown = Tab(browser, tmp_path, several())
    shown.tab.keyboard.press("Tab")
    assert shown.focused() == "to the graphs"
    for expected in ("filter", "only"):
        shown.tab.keyboard.press("Tab")
        assert shown.focused() == expected
    shown.tab.get_by_role("link", name="mylib::scale.x").first.focus()
    shown.tab.keyboard.press("Enter")
    shown.tab.wait_for_function("document.activeElement.matches('.l.clone')")
    assert shown.tab.locator("details[data-kind=graph][open]").count() == 1
    shown.tab.keyboard.press("Tab")
    assert shown.focused() == "sum_1"
    shown.tab.keyboard.press("Enter")
    shown.tab.wait_for_function("document.activeElement.matches('.l.blocker')")
    assert shown.visible("details[open] .l.blocker") != []
    assert shown.said == []


def test_a_link_opens_what_is_closed_every_time(browser: Any, tmp_path: Path) -> None:
    shown = Tab(browser, tmp_path, several())
    link = shown.tab.get_by_role("link", name="mylib::scale.x").first
    for _ in range(2):  # the second time the address does not change
        link.click()
        shown.tab.wait_for_function("document.activeElement.matches('.l.clone')")
        shown.tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = false; })")
    assert shown.said == []


def test_hostile_names_do_nothing(browser: Any, tmp_path: Path) -> None:
    shown = Tab(browser, tmp_path, hostile())
    shown.tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    shown.tab.get_by_label("Filter").fill("<script>")
    assert shown.visible("#count") == ["1 of 12 tests, 1 of 12 lines, 1 of 12 clones, 1 of 12 graphs shown"]
    assert shown.tab.locator("script").count() == 1
    assert shown.tab.locator("img").count() == 0
    assert shown.said == []


def test_without_script_everything_is_there(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page(several(), SourceLinks(tmp_path, None)))
    tab = browser.new_context(java_script_enabled=False).new_page()
    tab.goto(path.as_uri())
    assert not tab.locator("#bar").is_visible()
    assert tab.locator("tr[data-kind=test]").count() == 3
    tab.locator("details[data-kind=graph] summary").first.click()
    assert tab.locator("details[open] .l.clone").first.is_visible()
