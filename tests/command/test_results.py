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
