"""``--reinplace-measure`` and its kin on a downstream project, by the graph backend: it compiles at once."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

# pytester forgets what is imported inside, by halves.
import pytest_reinplace.measure.summary
import pytest_reinplace.measure.update
import pytest_reinplace.session.entry_test  # noqa: F401
from pytest_reinplace.entry.entry import SUFFIX, load
from pytest_reinplace.entry.run import run
from pytest_reinplace.measure import sides

BUILDERS = """
import pathlib
import torch
from pytest_reinplace import Program

def write(x, index, value):
    x[index] = value
    return x * 2

def update(device, size=64):
    return Program(write, (torch.zeros(size, device=device), torch.tensor([1, 3]), torch.ones(2)))

def count(x, step):
    step += 1
    return x.index_add_(0, step, x[:1] * 2)

def counting(device):
    return Program(count, (torch.ones(60, device=device), torch.tensor([1])))

def huge(device):
    raise torch.OutOfMemoryError("tried to allocate 1.00 TiB")

def crowded(device, tried=[]):
    tried.append(device)
    if len(tried) == 1:
        raise torch.OutOfMemoryError("tried to allocate 1.00 TiB")
    return update(device)

def planted(gm):
    '''The exact pass, and behind it a needless copy of what is returned.'''
    from pytest_reinplace.passes import reinplace
    reinplace(gm)
    *_, output = gm.graph.nodes
    for node in output.all_input_nodes:
        with gm.graph.inserting_before(output):
            copy = gm.graph.call_function(torch.ops.aten.clone.default, (node,))
        copy.meta.update(node.meta)
        output.replace_input_with(node, copy)

def exact(gm):
    from pytest_reinplace.passes import reinplace
    reinplace(gm)

def slow(gm):
    '''The exact pass, and behind it products that take a hundred times as long as the program.'''
    exact(gm)
    *_, output = gm.graph.nodes
    (node,) = output.all_input_nodes
    for _ in range(500):
        with gm.graph.inserting_before(output):
            made = gm.graph.call_function(torch.ops.aten.mul.Tensor, (output.all_input_nodes[0], 1.0))
        made.meta.update(node.meta)
        output.replace_input_with(output.all_input_nodes[0], made)

def slow_once(gm):
    '''As where a compiler times its choices beside somebody else.'''
    compiled = pathlib.Path("compiled.txt")
    (exact if compiled.exists() else slow)(gm)
    compiled.touch()
"""
ENTRY = "builder: builders:update\nclones: {exact: []}\n"


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile once outside: pytester forgets modules imported inside, and torch cannot bear that."""
    folder = tmp_path_factory.mktemp("warm")
    (folder / "warm_builders.py").write_text(BUILDERS)
    path = folder / f"warm{SUFFIX}"
    path.write_text(ENTRY.replace("builders:", "warm_builders:"))
    run(load(path), load(path).presets["cpu"], "exact", "graph", folder)


@pytest.fixture
def project(warm: None, compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # pytest-benchmark times nothing in a worker
    compiling.makepyfile(builders=BUILDERS)
    folder = compiling.mkdir("models")
    (folder / f"update{SUFFIX}").write_text(ENTRY)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:anyio -p no:cacheprovider")
    return compiling


def baselines(project: pytest.Pytester) -> Path:
    (found,) = (project.path / "models" / "baselines").glob("*.yaml")
    return found


def edited(project: pytest.Pytester, side: str, **figures: int) -> None:
    path = baselines(project)
    data = yaml.safe_load(path.read_text())
    data["entries"]["update"]["sides"][side].update(figures)
    path.write_text(yaml.safe_dump(data))


def recorded(project: pytest.Pytester) -> dict[str, dict[str, int]]:
    return yaml.safe_load(baselines(project).read_text())["entries"]["update"]["sides"]  # type: ignore[no-any-return]


def test_what_is_recorded_holds(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("models", "--reinplace-update", "--benchmark-max-time=0.1")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*update: exact peak_bytes: - → *", "*update: inductor clones: - → 0*"])
    figures = recorded(project)
    assert set(figures) == {"eager", "exact", "inductor"}
    assert figures["exact"]["clones"] == 0
    assert 256 <= figures["exact"]["peak_bytes"] <= figures["inductor"]["peak_bytes"]  # x * 2
    again = project.runpytest_inprocess("models", "--reinplace-measure", "--benchmark-max-time=0.1")
    again.assert_outcomes(passed=1)
    again.stdout.fnmatch_lines(["update on cpu-*-graph", "*clones*peak*runtime*", "  exact *"])
    again.stdout.fnmatch_lines(["*benchmark 'reinplace'*"])


def test_a_run_without_entries_has_no_section_of_them(project: pytest.Pytester) -> None:
    project.makepyfile(test_none="def test_none(): pass")
    result = project.runpytest_inprocess("test_none.py", "--reinplace-update")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*reinplace measured*")


def test_a_planted_clone_is_red_in_all_reports(project: pytest.Pytester) -> None:
    pass_ = "--reinplace-pass=builders:exact"
    project.runpytest_inprocess("models", "--reinplace-update", pass_, "--benchmark-disable")
    figures = recorded(project)["builders:exact"]
    path = baselines(project)
    path.write_text(path.read_text().replace("builders:exact:", "builders:planted:"))
    planted = project.runpytest_inprocess(
        "models",
        "--reinplace-measure",
        "--reinplace-pass=builders:planted",
        "--benchmark-disable",
        "--reinplace-json=a.json",
        "--reinplace-markdown=a.md",
    )
    planted.assert_outcomes(failed=1)
    data = json.loads((project.path / "a.json").read_text())
    (test,) = data["tests"].values()
    assert test["peak_bytes"] == 512  # what is returned, and its copy
    (line,) = test["measured"]["excesses"]
    assert line.startswith(f"peak bytes {figures['peak_bytes']} B → 512 B (recorded), +")
    planted.stdout.fnmatch_lines([f"  {line}"])
    shown = html.unescape((project.path / "a.md").read_text())
    assert f"- <code>models/update.reinplace.yaml::update</code>: <code>{line}</code>" in shown


def test_limits_are_those_that_are_given(project: pytest.Pytester) -> None:
    project.runpytest_inprocess("models", "--reinplace-update", "--benchmark-disable")
    edited(project, "exact", peak_bytes=recorded(project)["exact"]["peak_bytes"] - 3)
    gate = ("models", "--reinplace-measure", "--benchmark-disable")
    for limit, outcome in {
        "0": "failed",
        "1%": "failed",
        "2%": "passed",
        "2B": "failed",
        "3B": "passed",
    }.items():
        result = project.runpytest_inprocess(*gate, f"--reinplace-fail-on=peak_bytes:{limit}")
        result.assert_outcomes(**{outcome: 1})


def test_a_limit_that_is_held_against_nothing_fails(project: pytest.Pytester) -> None:
    gate = ("models", "--reinplace-measure", "--benchmark-disable")
    text = "no baseline: record it with --reinplace-update-new-only"
    result = project.runpytest_inprocess(*gate)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*{text}"])
    limited = (*gate, "--reinplace-fail-on=clones:0")
    result = project.runpytest_inprocess(*limited)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"update on cpu-*-graph, pass exact: {text}"])
    project.runpytest_inprocess("models", "--reinplace-update-new-only", "--benchmark-disable")
    project.runpytest_inprocess(*limited).assert_outcomes(passed=1)
    result = project.runpytest_inprocess(*limited, "--reinplace-pass=builders:exact")
    result.assert_outcomes(failed=1)
    text = "no baseline for pass builders:exact: record it with --reinplace-update"
    result.stdout.fnmatch_lines([f"update on cpu-*-graph, pass builders:exact: {text}"])


@pytest.mark.parametrize(("name", "outcome"), [("slow", "failed"), ("slow_once", "passed")])
def test_what_is_slow_is_compiled_anew_before_it_fails(
    project: pytest.Pytester, name: str, outcome: str
) -> None:
    options = ["--reinplace-against=inductor", "--reinplace-fail-on=runtime:50%", "--benchmark-max-time=0.1"]
    result = project.runpytest_inprocess("models", f"--reinplace-pass=builders:{name}", *options)
    result.assert_outcomes(**{outcome: 1})
    line = {
        "slow": "  runtime +*%: * times that of inductor *, compiled and measured 3 times; allowed is *",
        "slow_once": "  runtime was * times that of inductor; compiled and measured anew it was *",
    }
    result.stdout.fnmatch_lines([line[name]])


def test_another_device_has_no_baselines(project: pytest.Pytester) -> None:
    project.mkdir("models/baselines")
    (project.path / "models/baselines/cuda-sm90-h200.yaml").write_text("schema: 1\ndevice: x\nentries: {}\n")
    result = project.runpytest_inprocess("models", "--reinplace-measure", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*no baselines for cpu-*; record them: pytest *update* --reinplace-update*"])


def test_new_only_leaves_what_is_recorded(project: pytest.Pytester) -> None:
    project.runpytest_inprocess("models", "--reinplace-update", "--benchmark-disable")
    edited(project, "exact", peak_bytes=7)
    (project.path / "models" / f"second{SUFFIX}").write_text(ENTRY)
    result = project.runpytest_inprocess("models", "--reinplace-update-new-only", "--benchmark-disable")
    result.assert_outcomes(passed=2)
    assert recorded(project)["exact"]["peak_bytes"] == 7
    assert "second" in yaml.safe_load(baselines(project).read_text())["entries"]
    result.stdout.fnmatch_lines(["*second: exact peak_bytes: - → *"])
    # Old to new, and the entry that is gone is pruned, but only where everything has run.
    (project.path / "models" / f"second{SUFFIX}").unlink()
    partly = project.runpytest_inprocess(
        "models", "--reinplace-update", "--benchmark-disable", "-k", "update"
    )
    partly.stdout.fnmatch_lines(["*update: exact peak_bytes: 7 → *"])
    assert "second" in baselines(project).read_text()
    project.runpytest_inprocess("models", "--reinplace-update", "--benchmark-disable").stdout.fnmatch_lines(
        ["*second: removed*"]
    )
    assert "second" not in baselines(project).read_text()


def test_what_is_wrong_is_not_recorded(project: pytest.Pytester) -> None:
    (project.path / "models" / f"update{SUFFIX}").write_text(ENTRY.replace("[]", '["a::b.c"]'))
    result = project.runpytest_inprocess("models", "--reinplace-update-new-only", "--benchmark-disable")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 expected clone is missing: a::b.c *", "*update: not recorded*"])
    assert "update" not in yaml.safe_load(baselines(project).read_text())["entries"]


def test_state_is_put_back_between_calls_and_memory_that_ends_is_told(project: pytest.Pytester) -> None:
    folder = project.path / "models"
    (folder / f"update{SUFFIX}").write_text(ENTRY.replace("update", "counting"))
    (folder / f"huge{SUFFIX}").write_text(ENTRY.replace("update", "huge"))
    result = project.runpytest_inprocess("models", "--reinplace-measure", "--benchmark-max-time=0.05")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["out of memory: huge on cpu: tried to allocate 1.00 TiB; choose smaller args*"]
    )


@pytest.mark.parametrize("options", [(), ("--reinplace-measure", "--benchmark-max-time=0.05")])
def test_a_worker_tries_again_alone(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    folder = project.path / "models"
    (folder / f"update{SUFFIX}").write_text(ENTRY.replace("update", "crowded"))
    (folder / f"huge{SUFFIX}").write_text(ENTRY.replace("update", "huge"))
    result = project.runpytest_inprocess("models", *options)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["out of memory: *tried to allocate 1.00 TiB, also with no other worker on the device; choose*"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_side_that_must_not_run_is_left_out(project: pytest.Pytester) -> None:
    entry = project.path / "models" / f"update{SUFFIX}"
    entry.write_text(ENTRY + "unrunnable: {inductor: it reads past the end}\n")
    for options in (["--reinplace-update"], ["--reinplace-measure"], ["--reinplace-against=inductor"]):
        result = project.runpytest_inprocess("models", *options, "--benchmark-max-time=0.05")
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["*not run with inductor: it reads past the end"])
    assert set(recorded(project)) == {"eager", "exact"}
    result = project.runpytest_inprocess("models", "--reinplace-measure", "--reinplace-pass=inductor", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*not run with pass inductor: it reads past the end*"])
    entry.write_text(ENTRY + "unrunnable: {inductr: no}\n")
    project.runpytest_inprocess("models").stdout.fnmatch_lines(["*unknown pass*did you mean 'inductor'*"])


def test_workers_record_as_a_serial_run_does(project: pytest.Pytester) -> None:
    (project.path / "models" / f"second{SUFFIX}").write_text(ENTRY)
    texts = []
    for run_pytest, more in ((project.runpytest_inprocess, ()), (project.runpytest_subprocess, ("-n2",))):
        run_pytest("models", "--reinplace-update", "--benchmark-disable", *more)
        texts.append(baselines(project).read_text())
        baselines(project).unlink()
    assert texts[0] == texts[1]
    assert "second" in texts[0]


def test_a_wrong_file_of_baselines_fails_by_its_line(project: pytest.Pytester) -> None:
    project.runpytest_inprocess("models", "--reinplace-update", "--benchmark-disable")
    path = baselines(project)
    path.write_text(path.read_text().replace("schema: 1", "schema: 9"))
    result = project.runpytest_inprocess("models", "--reinplace-measure", "--benchmark-disable")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"models/*/{path.name}:*: expected schema: 1, got 9; it is of a newer*"])


def test_a_side_whose_compiler_fails_is_told(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiles = sides._Bench.compile

    def failing(self: Any, name: str, *asked: Any) -> None:
        if name == "inductor":
            raise TypeError("list indices must be integers")
        compiles(self, name, *asked)

    monkeypatch.setattr(sides._Bench, "compile", failing)
    result = project.runpytest_inprocess("models", "--reinplace-measure", "--benchmark-disable")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*not run with inductor: TypeError: list indices must be integers"])
