"""``pytest-reinplace history``: trends over reports, and what dashboards of others take."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_reinplace.compare.trend_text import sparkline

from .reports import clone, graph, in_place, main, test, write

ONE, TWO = "test_a.py::test_one", "test_a.py::test_two"


@pytest.fixture
def week(tmp_path: Path) -> list[str]:
    """Return three reports: one test grows and is missing once, the other stays."""
    stays = {TWO: test(clone())}
    return [
        write(tmp_path / "monday.json", {ONE: test(clone()), **stays}),
        write(tmp_path / "tuesday.json", stays),
        write(
            tmp_path / "wednesday.json",
            {ONE: test(clone(), clone(4064), peak_bytes=2048, runtime=0.5), **stays},
        ),
    ]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["history", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_table_is_that_of_the_docs(
    week: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path / "wednesday.json", {ONE: test(clone(), clone(4064)), TWO: test(clone())})
    monkeypatch.chdir(tmp_path)
    lines = said(capsys, "monday.json", "tuesday.json", "wednesday.json")
    docs = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    assert "\n".join(lines) in docs
    assert [line.split()[-1] for line in lines[2:]] == ["▁·█", "▁·█", "▁▁▁", "▁▁▁"]


def test_a_figure_that_is_missing_is_a_gap_and_no_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gaps: list[dict[str, Any]] = [{"graphs": []}, {"graphs": [graph(problem="odd")]}]
    paths = [write(tmp_path / "a.json", {ONE: test(clone(), clone())})]
    paths += [write(tmp_path / f"b{i}.json", {ONE: test(**gap)}) for i, gap in enumerate(gaps)]
    paths.append(write(tmp_path / "c.json", {ONE: test(in_place())}))
    lines = said(capsys, *paths)
    assert re.fullmatch(rf"{ONE} +clones +2 +0 +-2, -100.0 % +█··▁", lines[2])
    lines = said(capsys, *paths[:2])
    assert re.fullmatch(rf"{ONE} +clones +2 +- +not in the last report +▁·", lines[2])


def test_all_figures_are_shown_from_where_they_begin(
    week: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(capsys, *week)
    assert re.fullmatch(r" +peak bytes +2.0 KiB +2.0 KiB +none +··▁", lines[4])
    assert re.fullmatch(r" +runtime +500 ms +500 ms +none +··▁", lines[5])


def test_many_reports_are_few_bars_that_show_the_last_of_each() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([5, None, 5]) == "▁·▁"
    assert sparkline(range(160)) == sparkline([9 + 10 * i for i in range(16)])
    assert len(sparkline(range(17))) == 16


def test_a_folder_is_read_by_name_or_by_when_reports_were_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "b.json", {ONE: test(clone(), clone())}, taken="2026-01-01")
    write(tmp_path / "a.json", {ONE: test(clone())})
    (tmp_path / "notes.txt").write_text("none")
    assert said(capsys, str(tmp_path))[2].endswith("▁█")
    write(tmp_path / "a.json", {ONE: test(clone())}, taken="2026-01-02")
    assert said(capsys, str(tmp_path))[2].endswith("█▁")


def test_as_markdown_names_mean_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = {f"t.py::<b>|\x1b{i}": test(clone()) for i in range(2000)}
    assert main(["history", write(tmp_path / "a.json", tests), "--markdown"]) == 0
    text = capsys.readouterr().out
    assert len(text) < 60_000
    assert "| test | figure | first | last | change | trend |" in text
    assert re.search(r"and \d+ more", text)
    assert not re.search(r"<b>|\x1b", text)


def test_the_chart_has_a_cell_for_each_figure_and_gaps(
    week: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    week.insert(0, write(tmp_path / "sunday.json", {"<b>": test(clone()), ONE: test(clone())}))
    assert main(["history", *week, "--svg", str(tmp_path / "out.svg")]) == 0
    name = "{http://www.w3.org/2000/svg}"
    cells = ElementTree.parse(tmp_path / "out.svg").getroot().findall(f"{name}g")
    assert [cell.findtext(f"{name}title") for cell in cells][:3] == [
        "<b>: clones",
        "<b>: clone bytes",
        f"{ONE}: clones",
    ]
    (inner,) = cells[2].findall(f"{name}svg")
    assert len(inner.findall(f"{name}circle")) == 3
    (line,) = inner.findall(f"{name}polyline")  # monday to wednesday are not joined
    assert len(line.attrib["points"].split()) == 2


def test_bencher_takes_the_last_report(week: list[str], tmp_path: Path) -> None:
    assert main(["history", *week, "--bencher", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out").read_text()) == {
        ONE: {
            "clones": {"value": 2},
            "clone-bytes": {"value": 4096},
            "peak-bytes": {"value": 2048},
            "latency": {"value": 0.5e9},
        },
        TWO: {"clones": {"value": 1}, "clone-bytes": {"value": 32}},
    }


def test_pytorch_takes_the_last_report_with_the_first_as_target(tmp_path: Path) -> None:
    backward = {"graphs": [graph(clone()), graph(clone(), graph="[bw 0/0]")]}
    paths = [
        write(tmp_path / "a.json", {ONE: test(clone())}),
        write(tmp_path / "b.json", {ONE: test(**backward, runtime=0.5)}, device={"slug": "cpu-x"}),
    ]
    assert main(["history", *paths, "--pytorch", str(tmp_path / "out")]) == 0
    records = json.loads((tmp_path / "out").read_text())
    assert [record["metric"] for record in records] == [
        {"name": "clones", "benchmark_values": [2], "target_value": 1, "extra_info": {"unit": "clones"}},
        {"name": "clone_bytes", "benchmark_values": [64], "target_value": 32, "extra_info": {"unit": "B"}},
        {"name": "runtime", "benchmark_values": [0.5], "extra_info": {"unit": "s"}},
    ]
    known = {"pytest-reinplace": "0.1.0", "torch": "2.13.0", "device": "cpu-x"}
    for record in records:
        assert record["model"] == {"name": ONE}
        assert record["benchmark"] == {
            "name": "pytest-reinplace",
            "mode": "training",
            "extra_info": {**known, "pass": "inductor", "backend": "graph"},
        }


def test_what_cannot_be_used_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "a.json", {})
    (tmp_path / "none").mkdir()
    for arguments, message in (
        ([good, write(tmp_path / "b.json", {}, schema=99)], "written by a newer"),
        ([good, str(tmp_path / "c.json")], "cannot be read: No such file"),
        ([str(tmp_path / "none")], "expected reports of --reinplace-json, got a folder without"),
        ([good, "--bencher", str(tmp_path / "no" / "x.json")], "--bencher: cannot write"),
    ):
        assert main(["history", *arguments]) == 2
        found = capsys.readouterr()
        assert found.out == ""
        assert found.err.startswith("pytest-reinplace history: error: ")
        assert message in found.err


def test_reports_without_tests_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, write(tmp_path / "a.json", {}))[1] == "no test with a figure in any of them"
