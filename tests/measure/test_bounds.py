"""The lower bound that measuring an entry records: beside its figures, in reports, and as a limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

# pytester forgets what is imported inside, by halves.
import pytest_reinplace.measure.summary
import pytest_reinplace.measure.update
import pytest_reinplace.session.entry_test  # noqa: F401
from pytest_reinplace.base import launch
from pytest_reinplace.entry.entry import load
from pytest_reinplace.entry.held import held
from pytest_reinplace.lowered.calls import Calls
from pytest_reinplace.measure.sides import Effort, measured

from ..command.reports import main
from ..plugin.entries import ABOVE_BOUND, LOWERED, run, written

pytestmark = pytest.mark.usefixtures("unoptimized")


def sides_of(path: Path, backend: str = "inductor") -> dict[str, Any]:
    entry = load(path)
    with measured(entry, entry.presets["cpu"], "exact", backend, path.parent, effort=Effort(0)) as found:
        return {**found.sides, "held": found.verdicts[-1].held}


def test_a_measured_side_has_the_bound_of_its_programs(tmp_path: Path) -> None:
    found = sides_of(written(tmp_path, ABOVE_BOUND))
    side = found["exact"]
    assert (side.peak_bytes, side.static_peak, side.lower_bound) == (544, 544, 512)
    assert side.over_bound == 544 / 512
    assert found["eager"].lower_bound is None and found["inductor"].lower_bound is None
    assert set(side.exact) == {"clones", "clone_bytes", "peak_bytes"}  # what baselines hold


def test_what_writes_into_its_inputs_alone_needs_nothing(tmp_path: Path) -> None:
    side = sides_of(written(tmp_path, ABOVE_BOUND, "args: {which: given}\n"))["exact"]
    assert (side.peak_bytes, side.static_peak, side.lower_bound, side.over_bound) == (0, 0, 0, None)


def test_where_nothing_is_lowered_there_is_none(tmp_path: Path) -> None:
    found = sides_of(written(tmp_path, ABOVE_BOUND), "graph")
    assert (found["exact"].static_peak, found["exact"].lower_bound) == (None, None)
    assert not found["held"].is_odd


def test_what_cannot_be_followed_costs_the_bound_alone() -> None:
    def broken() -> None:
        raise ValueError("no profile\nof this")

    found = held(Calls(), broken, lambda: None, "cpu")
    assert (found.bound, found.problem, found.is_odd) == (None, "ValueError: no profile of this", True)


def test_where_several_processes_call_nobody_calls_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "processes", lambda: 2)
    found = held(Calls(), lambda: pytest.fail("called"), lambda: None, "cpu")
    assert (found.bound, found.problem, found.is_odd) == (None, "several processes run it", False)


@pytest.fixture
def project(compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # pytest-benchmark times nothing in a worker
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:anyio -p no:cacheprovider")
    return compiling


MEASURED = (LOWERED, "--reinplace-against=inductor", "--benchmark-max-time=0.05")


def test_files_tables_and_the_results_page_have_it(project: pytest.Pytester) -> None:
    pytest.importorskip("jinja2")
    result = run(project, ABOVE_BOUND, "", *MEASURED, "--reinplace-json=a.json", "--benchmark-json=b.json")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*peak*bound*over*runtime*", "  exact *544 B *512 B *1.06 *"])
    (benchmark,) = json.loads((project.path / "b.json").read_text())["benchmarks"]
    exact = benchmark["extra_info"]["exact"]
    assert (exact["peak_bytes"], exact["static_peak"], exact["lower_bound"]) == (544, 544, 512)
    assert "lower_bound" not in benchmark["extra_info"]["inductor"]
    out = project.path / "r.md"
    assert main(["results", str(project.path / "a.json"), str(out)]) == 0
    text = out.read_text()
    assert "is known: 1. Just that is held by 0,\nat most 1.1 times that by 1." in text
    assert " | 544 B | 512 B | 1.06 | " in text


def test_a_limit_is_kept_where_an_entry_is_measured(project: pytest.Pytester) -> None:
    result = run(project, ABOVE_BOUND, "max_peak_over_bound: 1.05", *MEASURED, "--benchmark-disable")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["model on cpu: the peak, 544 B, is 1.062 times its lower bound, 512 B; the limit is *=1.05 (*"]
    )
