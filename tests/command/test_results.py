"""``pytest-reinplace results``: a page and a plot of what a run measured."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_reinplace.measure.gate import Ruling
from pytest_reinplace.measure.result import Result
from pytest_reinplace.record.record import Record
from pytest_reinplace.reports.document import as_json, document, schema

from ..measure.measurements import measurement
from .reports import main

pytest.importorskip("jinja2")


def written(path: Path, *results: Result) -> Path:
    records = [Record(f"corpus/{r.measurement.entry}", "passed", (), r.to_dict()) for r in results]
    path.write_text(as_json(document(records, "exact", "inductor")))
    return path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    better = measurement(0.5e-3, entry="b<script>", clones=0, clone_bytes=0, peak_bytes=50_000)
    worse = measurement(2e-3, entry="a")
    return written(
        tmp_path / "a.json",
        Result(better, Ruling(), True),
        Result(worse, Ruling(("too slow",), ("odd",)), True),
    )


def test_the_page_has_a_table_for_each_entry(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = report.parent / "results.md"
    assert main(["results", str(report), str(out), "--about", "pytest corpus --reinplace-measure"]) == 0
    assert "2 entries" in capsys.readouterr().out
    text = out.read_text()
    assert "$ pytest corpus --reinplace-measure" in text
    assert text.index("### a\n") < text.index("### b&#60;script&#62;\n")
    assert "| peak memory | 1 | 1 | 0 |" in text
    assert "| runtime | 1 | 0 | 1 |" in text
    assert "too slow" in text and "odd" in text
    assert "2.0 KiB" in text  # what the better one's clones would be
    assert "](results.svg)" in text


def bounded(peak: int, bound: int | None, entry: str) -> Result:
    found = measurement(entry=entry, peak_bytes=peak, **({} if bound is None else {"lower_bound": bound}))
    return Result(found, Ruling(), True)


def test_the_page_says_how_far_peaks_are_from_their_lower_bound(tmp_path: Path) -> None:
    entries = {
        "exact": (512, 512),
        "empty": (0, 0),
        "near": (1100, 1000),
        "far": (3000, 1000),
        "none": (9, None),
    }
    report = written(tmp_path / "a.json", *(bounded(*both, name) for name, both in entries.items()))
    assert main(["results", str(report), str(tmp_path / "r.md")]) == 0
    text = (tmp_path / "r.md").read_text()
    told = "bound of the peak is known: 4. Just that is held by 2,\nat most 1.1 times that by 3."
    assert told in text
    assert "* *bound*: the least that the programs of our pass must hold" in text
    rows = {part.partition("\n")[0]: part for part in text.split("### ")[1:]}
    assert "| side | clones | clone bytes | peak | bound | over | runtime |" in rows["far"]
    assert "| 2.9 KiB | 1000 B | 3.00 |" in rows["far"] and "| 1000 B | 1.10 |" in rows["near"]
    assert "| 512 B | 512 B | 1.00 |" in rows["exact"] and "| 0 B | 0 B | - |" in rows["empty"]
    assert "bound" not in rows["none"] and "| side | clones | clone bytes | peak | runtime |" in rows["none"]


def test_a_report_of_before_has_a_page_without_bounds(report: Path) -> None:
    data = json.loads(report.read_text())
    for test in data["tests"].values():
        for side in test["measured"]["sides"].values():
            del side["lower_bound"], side["static_peak"]
    report.write_text(json.dumps(data))
    assert main(["results", str(report), str(report.parent / "r.md")]) == 0
    assert "bound*" not in (report.parent / "r.md").read_text()
    assert "lower bound" not in (report.parent / "r.md").read_text()


def test_the_plot_is_a_picture_of_all_entries(report: Path) -> None:
    out = report.parent / "results.md"
    main(["results", str(report), str(out)])
    root = ElementTree.parse(out.with_suffix(".svg")).getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a", "b<script>", "0.50", "1.00"} <= set(texts)


def test_the_report_is_as_its_schema_says(report: Path) -> None:
    jsonschema.Draft202012Validator(schema()).validate(json.loads(report.read_text()))


def test_nothing_measured_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    path.write_text(as_json(document([Record("t", "passed", ())], None, None)))
    assert main(["results", str(path), str(tmp_path / "r.md")]) == 2
    assert "nothing was measured" in capsys.readouterr().err
    assert not (tmp_path / "r.md").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sides", []),
        ("pass_name", "other"),
        ("entry", None),
        ("sides", {"exact": {"times": "fast"}}),
        ("calls", {}),
    ],
)
def test_damage_is_said(report: Path, capsys: pytest.CaptureFixture[str], key: str, value: Any) -> None:
    data = json.loads(report.read_text())
    if value is None:
        del data["tests"]["corpus/a"]["measured"][key]
    else:
        data["tests"]["corpus/a"]["measured"][key] = value
    report.write_text(json.dumps(data))
    assert main(["results", str(report), str(report.parent / "r.md")]) == 2
    assert "what was measured is damaged" in capsys.readouterr().err
