"""The page of a call's memory in a browser: what is wide is followed, and what is narrow can be read."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pytest_reinplace.memory_views.drawn import Side
from pytest_reinplace.memory_views.page import page

from .calls import call, program

pytest.importorskip("jinja2")

# Where a part of the picture lies in its window, from left to right.
INSIDE = """
(chart, selector) => {
  const part = chart.querySelector(selector).getBoundingClientRect();
  const window = chart.parentElement.getBoundingClientRect();
  return [part.left - window.left, window.right - part.right];
}
"""


def opened(browser: Any, folder: Path, *sides: Side, width: int = 1000, scheme: str = "light") -> Any:
    """Return a page that is shown, which has said nothing."""
    path, said = folder / "memory.html", list[str]()
    path.write_text(page("mylib:step", sides))
    shown = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    shown.goto(path.as_uri())
    assert said == []
    return shown


def long_names() -> Side:
    """Return a call whose operator, nodes and line have names that no narrow window has room for."""
    side = call(program(5))
    (one,) = side.programs
    name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward"
    rows = [
        dataclasses.replace(
            row, nodes=(name, *(f"view_{i}" for i in range(9)), "mm_4"), source=f"/a/{name}.py:3"
        )
        for row in one.rows
    ]
    return dataclasses.replace(
        side, programs=(dataclasses.replace(one, rows=tuple(rows), lines=(name * 3,) * 30),)
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(browser: Any, tmp_path: Path, width: int) -> None:
    shown = opened(browser, tmp_path, long_names(), call(program(3), pass_name="inductor"), width=width)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    table = shown.locator("div.scroll:has(table)").first
    assert table.evaluate("(e) => e.scrollWidth <= e.clientWidth") is True


def test_the_slider_tells_both_sides_each_in_a_line_of_its_own(browser: Any, tmp_path: Path) -> None:
    shown = opened(browser, tmp_path, call(program(5), pass_name="inductor"), call(program(6)))
    slider, output = shown.get_by_role("slider"), shown.locator("output")
    slider.focus()
    slider.press("Home")
    slider.press("ArrowRight")
    first, before, after = output.inner_text().split("\n")
    assert first == "position 1"
    assert before.startswith("inductor: ") and after.startswith("exact: ")
    assert shown.locator("caption").first.inner_text().startswith("Held at position 1: ")
    alone = opened(browser, tmp_path, call(program(5)))
    assert alone.locator("output").inner_text().startswith(f"position {program(5).peak_at}: ")


def test_in_a_narrow_window_the_position_is_brought_into_sight_and_names_stay(
    browser: Any, tmp_path: Path
) -> None:
    shown = opened(browser, tmp_path, call(program(5, positions=40)), width=390)
    chart, slider = shown.locator("svg[data-live]"), shown.get_by_role("slider")
    for key in ("End", "Home"):
        slider.press(key)
        shown.wait_for_timeout(100)
        assert min(chart.evaluate(INSIDE, ".cross")) >= 0, key
        assert 0 <= chart.evaluate(INSIDE, "g.first text")[0] < 20, key
    slider.press("End")
    shown.wait_for_timeout(100)
    assert chart.evaluate("(e) => e.parentElement.scrollLeft") > 0


def test_in_a_narrow_window_each_row_tells_its_positions(browser: Any, tmp_path: Path) -> None:
    lives = "(e) => getComputedStyle(e, '::before').content"
    for width, told in ((390, '"positions "'), (1280, "none")):
        shown = opened(browser, tmp_path, call(program(5)), width=width)
        assert shown.locator("tbody tr:not([hidden]) td:nth-child(4)").first.evaluate(lives) == told


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    sides = long_names(), call(program(3), pass_name="inductor")
    shown = opened(browser, tmp_path, *sides, width=width, scheme=scheme)
    result = axe.run(shown, options={"resultTypes": ["violations"]})
    assert len(result.response["passes"]) > 10
    assert result.violations_count == 0, result.generate_report()
