"""Figures of the pages: those of the corpus on an H200 are the same everywhere, and are its baselines'."""

from __future__ import annotations

import dataclasses
import re
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_reinplace.compare.comparison import shown
from pytest_reinplace.measure.baseline import Baselines, load
from pytest_reinplace.record.figures import STOCK

from ..benchmarks.test_harness import load as benchmark
from ..house.checkout import ROOT
from .page import DOCS

README = (ROOT / "README.md").read_text()
RESULTS = (DOCS / "results.md").read_text()
FOLDER = ROOT / "corpus" / "baselines"
H200 = load(FOLDER / "cuda-sm90-h200.yaml")
BOTH = {name: sides for name, sides in H200.entries.items() if {STOCK, "exact"} <= sides.keys()}
# What baselines do not hold: the median of a runtime by Inductor's, and what the ratio surely is between.
_RATIO = re.compile(r"([\d.]+) \(([\d.]+)-([\d.]+)\)")


def words(text: str) -> str:
    """Return a text in one line, without emphasis."""
    return " ".join(text.replace("**", "").split())


def compared(metric: str) -> tuple[int, int]:
    """Return in how many entries ours needs less than Inductor's pass, and in how many more."""
    pairs = [(sides["exact"][metric], sides[STOCK][metric]) for sides in BOTH.values()]
    return sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)


def saved() -> str:
    """Return the bytes of the clones that are gone, in one call of each entry."""
    return shown(
        "clone_bytes", sum(s[STOCK]["clone_bytes"] - s["exact"]["clone_bytes"] for s in BOTH.values())
    )


def row(entry: str, side: str) -> dict[str, str]:
    """Return a side's cells in the page of results, by their heads."""
    lines = RESULTS.partition(f"\n### {entry}\n")[2].partition("\n###")[0].splitlines()
    found = next(line for line in lines if line.startswith(f"| <code>{side}</code>"))
    heads = next(line for line in lines if line.startswith("| side |"))
    cells = ([cell.strip() for cell in line.split("|")[2:-1]] for line in (heads, found))
    return dict(zip(*cells, strict=True))


def ratios() -> dict[str, tuple[float, float, float]]:
    """Return of each entry our runtime by Inductor's: the median, and what it surely is between."""
    matches = {name: _RATIO.fullmatch(row(name, "exact")["beside"]) for name in BOTH}
    return {name: (float(m[1]), float(m[2]), float(m[3])) for name, m in matches.items() if m is not None}


def test_the_page_of_results_is_of_the_run_that_the_baselines_are_of() -> None:
    for name, sides in H200.entries.items():
        for side in sides.keys() & {STOCK, "exact"}:
            cells = row(name, side)
            for head, metric in (
                ("clones", "clones"),
                ("clone bytes", "clone_bytes"),
                ("peak", "peak_bytes"),
            ):
                assert cells[head] == shown(metric, sides[side][metric]), name
    assert ratios().keys() == BOTH.keys()
    for name, (_, _, high) in ratios().items():
        assert high == round(BOTH[name]["exact"]["ratio_ppm"] / 1e6, 3), name


def test_the_totals_of_the_page_are_those_of_the_baselines() -> None:
    for title, metric in (("clone bytes", "clone_bytes"), ("peak memory", "peak_bytes")):
        less, more = compared(metric)
        assert f"| {title} | {less} | {len(BOTH) - less - more} | {more} |" in RESULTS
    assert f"{len(H200.entries)} entries on cuda-sm90-h200" in RESULTS
    assert f"in one call of each: {saved()}." in RESULTS


def test_the_readme_says_the_same() -> None:
    (less, more), found = compared("peak_bytes"), ratios().values()
    faster, slower = [r for r in found if r[2] < 1], sorted(r for r in found if r[1] > 1)
    assert more == 0  # else the sentence says something else
    by = " and ".join(f"{100 * (median - 1):.1f}" for median, _, _ in slower)
    assert (
        f"One call of each of the {len(BOTH)} programs that we measured on an H200 copies {saved()} less "
        f"with our pass. {less} of them hold less memory at their peak, none holds more; "
        f"{len(faster)} run faster, {len(slower)} run slower, by {by} %"
    ) in words(README)


def test_two_devices() -> None:
    sides = load(FOLDER / "cuda-sm90-h200-x2.yaml").entries["fsdp-copy-in"]
    stock, ours = sides[STOCK], sides["exact"]
    assert ours["clones"] == 0
    text = words((DOCS / "corpus.md").read_text())
    assert f"{stock['clones']} clones ({shown('clone_bytes', stock['clone_bytes'])})" in text
    assert f"{stock['peak_bytes'] / ours['peak_bytes']:.2f} times the peak memory" in text


def test_how_many_entries_there_are() -> None:
    count = len(list((ROOT / "corpus").glob("*.reinplace.yaml")))
    assert f"Ours has {count}." in README
    corpus = (DOCS / "corpus.md").read_text()
    assert f"holds {count} programs" in corpus and f"collected {count} items" in corpus


def test_random_graphs() -> None:
    found = re.search(
        r"^exact +(\d+) .*?^inductor +\d+ +\d+ +\d+ +\d+ +(\d+)",
        (DOCS / "optimality.md").read_text(),
        re.M | re.S,
    )
    assert found is not None and re.search(
        r"^exact +\d+ +0 +0 +0 +0 ", (DOCS / "optimality.md").read_text(), re.M
    )
    assert f"of {int(found[1]):,} it got none wrong, and Inductor's pass {found[2]} " in words(README)


def test_badges() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = project["requires-python"].removeprefix(">=")
    first, beyond = re.fullmatch(r"torch>=(\d+\.\d+),<2\.(\d+)", project["dependencies"][0]).groups()  # type: ignore[union-attr]
    assert f"badge/python-{python}%2B-" in README and f"[Python {python}+]" in README
    assert f"badge/torch-{first}_to_2.{int(beyond) - 1}-" in README
    assert f"(torch {first} to 2.{int(beyond) - 1})" in README
    assert f"badge/license-{project['license'].replace('-', '--')}-" in README


def test_the_picture_is_what_the_command_makes_of_the_baselines() -> None:
    drawing = benchmark("decode_memory")
    assert drawing.BASELINES == FOLDER / "cuda-sm90-h200.yaml"
    assert drawing.PICTURE.read_text() == drawing.picture(H200), "run: python benchmarks/decode_memory.py"


def changed(entry: str, **figures: int) -> Baselines:
    sides: Mapping[str, Mapping[str, int]] = H200.entries[entry]
    new = {**sides, "exact": {**sides["exact"], **figures}}
    return dataclasses.replace(H200, entries={**H200.entries, entry: new})


def test_the_picture_shows_what_is_worse_too() -> None:
    drawing = benchmark("decode_memory")
    stock = H200.entries["llama-decode"][STOCK]["peak_bytes"]
    worse = drawing.picture(changed("llama-decode", peak_bytes=2 * stock, clones=1))
    assert f">{shown('peak_bytes', 2 * stock)}, 1 clone<" in worse
    assert "; 1 hold more with our pass." in worse
    assert "; none holds more with our pass." in drawing.picture(H200)


def test_the_picture_is_legible_at_700_pixels() -> None:
    root = ElementTree.fromstring(benchmark("decode_memory").picture(H200))
    space = "{http://www.w3.org/2000/svg}"
    width = float(root.attrib["width"])
    assert width <= 700
    for text in root.iter(f"{space}text"):
        size = float(text.attrib.get("font-size", root.attrib["font-size"]))
        assert size >= 14
        # No letter of a sans-serif font is wider than its size on average: 0.6 of it, in bold.
        assert float(text.attrib["x"]) + 0.6 * size * len(text.text or "") <= width, text.text


@pytest.mark.parametrize("kind", ["ink", "quiet", "card", "stock", "ours"])
def test_each_colour_of_the_picture_has_a_dark_one(kind: str) -> None:
    text = benchmark("decode_memory").picture(H200)
    light = re.findall(rf'class="{kind}" fill="(#\w+)"', text)
    dark = re.findall(rf"^  \.{kind} {{ fill: (#\w+) }}$", text, re.M)
    assert light and len(dark) == 1 and dark[0] not in light


def test_the_pictures_of_the_reports_are_what_the_command_writes() -> None:
    drawing = benchmark("report_pictures")
    assert drawing.PAGE.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    root = ElementTree.fromstring(drawing.TERMINAL.read_text())
    told = "".join(text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "reinplace\xa0verify" in told and "reinplace:\xa07\xa0tests" in told
    # It is of the example as it stands: the line that is wrong is the one that is written there.
    lines = drawing.EXAMPLE.read_text().splitlines()
    assert (
        f"test_decoder.py:{1 + lines.index('        append_(k_cache, v_cache, x * 0.5, x + 1, at)')}" in told
    )
    for picture in (drawing.PAGE, drawing.TERMINAL):
        assert picture.stat().st_size < 150_000
        assert f"({picture.name})" in (DOCS / "reports.md").read_text()


def test_the_picture_of_the_terminal_loads_nothing() -> None:
    text = benchmark("report_pictures").TERMINAL.read_text()
    assert "url(http" not in text and "@font-face" not in text


def test_a_run_that_does_not_end_as_meant_makes_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = benchmark("report_pictures")
    other = tmp_path / "other.py"
    other.write_text("def test_it(): pass\n")
    monkeypatch.setattr(drawing, "EXAMPLE", other)
    with pytest.raises(RuntimeError, match="expected one test to fail by --reinplace-verify"):
        drawing.run(tmp_path)
