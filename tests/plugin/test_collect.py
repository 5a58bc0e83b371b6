"""Corpus entries of a downstream project: collected, passed, failed, skipped, and wrong ones refused."""

from __future__ import annotations

import json

import pytest

from pytest_reinplace.entry.entry import SUFFIX, load
from pytest_reinplace.entry.run import run

BUILDERS = """
import torch
from pytest_reinplace import Program

def write(x, index, value):
    x[index] = value
    return x.sum()

def read_old(x, index, value):
    new = x.index_put((index,), value)
    return new, x.sum()

def update(device, size=8):
    return Program(write, (torch.zeros(size, device=device), torch.tensor([1, 3]), torch.ones(2)))

def keep(device):
    return Program(read_old, (torch.zeros(8, device=device), torch.tensor([1, 3]), torch.ones(2)))

def add(device):
    return Program(lambda x: x + 1, (torch.zeros(8, device=device),))

def shift(state, x):
    longer = torch.cat([state, x])
    state.copy_(longer[-4:])
    return longer.sum()

def carry(device):
    return Program(shift, (torch.zeros(4, device=device), torch.ones(1, device=device)))

def train(device):
    return Program(torch.nn.Linear(2, 2), (torch.ones(2, 2),))

def nothing(device):
    return 3

def raising(device):
    raise OSError("no such checkpoint")

def break_values(gm):
    graph = getattr(gm, "graph", gm)
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.sum.default:
            with graph.inserting_after(node):
                new = graph.call_function(torch.ops.aten.add.Tensor, (node, 1))
            new.meta.update(node.meta)
            node.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
"""

ENTRY = "builder: builders:update\nclones: {exact: []}\n"


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile once outside: pytester forgets modules imported inside, and torch cannot bear that."""
    folder = tmp_path_factory.mktemp("warm")
    (folder / "warm_builders.py").write_text(BUILDERS)
    path = folder / f"warm{SUFFIX}"
    path.write_text("builder: warm_builders:update\nclones: {exact: []}\n")
    entry = load(path)
    for name in ("exact", "inductor"):
        assert run(entry, entry.presets["cpu"], name, "graph", folder).problems() == []


@pytest.fixture
def project(warm: None, pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a project with builders beside its entries."""
    pytester.makepyfile(builders=BUILDERS)
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n")
    return pytester


def write(project: pytest.Pytester, text: str, name: str = "model") -> None:
    (project.path / f"{name}.reinplace.yaml").write_text(text)


def test_an_entry_as_expected_passes(project: pytest.Pytester) -> None:
    write(project, ENTRY)
    result = project.runpytest("-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["model.reinplace.yaml::model PASSED*"])


def test_other_yaml_files_are_left_alone(project: pytest.Pytester) -> None:
    (project.path / "config.yaml").write_text("a: [")
    (project.path / "reinplace.yaml").write_text("a: [")
    assert project.runpytest().ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_an_unexpected_clone_fails_with_reason_and_line(project: pytest.Pytester) -> None:
    write(project, "builder: builders:keep\nclones: {exact: []}\n")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "model on cpu: 1 unexpected clone: aten::index_put.self (pass exact, backend graph)",
            "  aten::index_put.self at builders.py:9: 32 B, the old value is still read after this write",
            "    held back by sum_1 (aten::sum) at builders.py:10; hint: *",
            "expected [[][]], at clones.exact in model.reinplace.yaml",
            "got      [[]'aten::index_put.self'[]]",
            "if that is right, --reinplace-update-clones writes the list",
        ],
        consecutive=True,
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*torch.__trace*")


def test_the_same_clone_passes_when_it_is_expected(project: pytest.Pytester) -> None:
    write(project, "builder: builders:keep\nclones: {exact: ['aten::index_put.self']}\n")
    project.runpytest().assert_outcomes(passed=1)


def test_an_expected_clone_that_is_gone_fails(project: pytest.Pytester) -> None:
    write(project, "builder: builders:update\nclones: {exact: ['aten::index_put.self']}\n")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "model on cpu: 1 expected clone is missing: aten::index_put.self (pass exact, backend graph)",
            "expected [[]'aten::index_put.self'[]], at clones.exact in model.reinplace.yaml",
            "got      [[][]]",
        ],
        consecutive=True,
    )


def test_wrong_values_come_first(project: pytest.Pytester) -> None:
    write(project, "builder: builders:update\nclones: {'builders:break_values': ['aten::clone.self']}\n")
    result = project.runpytest("--reinplace-pass=builders:break_values")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["model on cpu: result: * (pass builders:break_values, *)", "expected [[]*"])
    result.stdout.no_fnmatch_line("*--reinplace-update-clones*")  # it would not help


def test_a_pass_without_expectation_is_only_checked_for_values(project: pytest.Pytester) -> None:
    write(project, "builder: builders:update\nclones: {inductor: ['wrong::label']}\n")
    project.runpytest("--reinplace-pass=exact").assert_outcomes(passed=1)


def test_the_pass_option_selects_the_expectation(project: pytest.Pytester) -> None:
    write(project, "builder: builders:update\nclones: {exact: [wrong], inductor: []}\n")
    project.runpytest("--reinplace-pass=inductor").assert_outcomes(passed=1)
    project.runpytest("--reinplace-pass=exact").assert_outcomes(failed=1)


def test_a_program_without_candidates_fails(project: pytest.Pytester) -> None:
    write(project, "builder: builders:add\nclones: {exact: []}\n")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*: no compiled graph holds a candidate, so the pass was not exercised (*"])


def test_each_pass_that_clones_are_listed_for_judges_the_entry(project: pytest.Pytester) -> None:
    """A clone that one of them leaves turns the entry red, whatever the other does."""
    write(project, "builder: builders:keep\nclones: {exact: ['aten::index_put.self'], inductor: []}\n")
    result = project.runpytest("-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "model.reinplace.yaml::model[[]exact[]] PASSED*",
            "model.reinplace.yaml::model[[]inductor[]] FAILED*",
            "model on cpu: 1 unexpected clone: aten::index_put.self *",
        ]
    )
    project.runpytest("-k", "exact").assert_outcomes(passed=1, deselected=1)
    project.runpytest("--reinplace-pass=exact").assert_outcomes(passed=1)
    project.runpytest("-o", "reinplace_pass=inductor").assert_outcomes(failed=1)


def test_reports_of_two_passes_can_be_compared_where_options_name_them(project: pytest.Pytester) -> None:
    write(project, "builder: builders:keep\nclones: {exact: [], inductor: []}\n")
    project.runpytest("--reinplace-pass=inductor", "--reinplace-json=old.json")
    of_both = "--reinplace-compare=old.json"
    told = project.runpytest("--reinplace-pass=exact", "-v", of_both).stdout
    told.fnmatch_lines(["model.reinplace.yaml::model FAILED*", "1 test in both reports, 1 unchanged"])
    told = project.runpytest(of_both).stdout  # model[exact] and model[inductor]
    told.fnmatch_lines(["*no test is in both reports, so nothing was compared"])


def test_an_entry_that_lists_nothing_is_judged_by_our_pass(project: pytest.Pytester) -> None:
    write(project, "builder: builders:update\nclones: {}\n")
    result = project.runpytest("-v")
    result.stdout.fnmatch_lines(["model.reinplace.yaml::model PASSED*"])


def test_a_copy_into_an_input_is_enough_to_exercise_a_pass(project: pytest.Pytester) -> None:
    """Inductor has no candidate here: what it copies into the input was made elsewhere."""
    write(project, "builder: builders:carry\nclones: {exact: [], inductor: []}\n")
    project.runpytest("--reinplace-pass=inductor").assert_outcomes(passed=1)
    project.runpytest("--reinplace-pass=exact").assert_outcomes(passed=1)


def test_a_missing_package_skips_by_name(project: pytest.Pytester) -> None:
    write(project, ENTRY + "requires: [torch, no_such_package.part]\n")
    result = project.runpytest("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*model.reinplace.yaml*package 'no_such_package.part' is not installed*"])


def test_a_missing_preset_skips_by_name(project: pytest.Pytester) -> None:
    write(project, ENTRY + "presets: {cuda: {}}\n")
    result = project.runpytest("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*no preset for cpu, only for cuda*"])


def test_tags_select(project: pytest.Pytester) -> None:
    write(project, ENTRY + "tags: [cache]\n", "one")
    write(project, ENTRY, "two")
    project.runpytest("-k", "cache").assert_outcomes(passed=1, deselected=1)


def test_a_wrong_entry_is_a_collection_error_with_file_and_line(project: pytest.Pytester) -> None:
    write(project, ENTRY + "tag: [a]\n", "bad")
    write(project, ENTRY, "good")
    result = project.runpytest()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*bad.reinplace.yaml:3: unknown key 'tag': did you mean 'tags'?"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("builder: nowhere:f", "builder 'nowhere:f' cannot be imported: No module named 'nowhere'"),
        ("builder: builders:updte", "module 'builders' has no attribute 'updte': did you mean 'update'?"),
        ("builder: builders:BUILDERS.x", "module 'builders' has no attribute 'BUILDERS'; valid are *'keep'*"),
        ("builder: builders:nothing", "*to return a pytest_reinplace.Program, got int"),
        ("builder: builders:update\nargs: {sise: 3}", "*does not take the arguments*'sise'*"),
        ("builder: builders:update\noptions: {max_fusion_sise: 3}", "*unknown Inductor option*did you mean*"),
    ],
)
def test_a_wrong_builder_is_explained(project: pytest.Pytester, text: str, message: str) -> None:
    write(project, text + "\nclones: {exact: []}\n")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"model.reinplace.yaml: *{message}*"])  # as it is seen from here
    result.stdout.no_fnmatch_line("*Traceback*")


def test_an_error_in_a_builder_keeps_its_traceback(project: pytest.Pytester) -> None:
    write(project, "builder: builders:raising\nclones: {exact: []}\n")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no such checkpoint*", "*builders.py*"])


def test_grad_without_a_result_that_requires_it_is_explained(project: pytest.Pytester) -> None:
    write(project, ENTRY + "grad: true\n")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*grad is true, but no result of builders:update requires a gradient*"])


@pytest.mark.parametrize(
    ("option", "asked", "as_eager"),
    [
        pytest.param("enable_auto_functionalized_v2", False, "silent", id="it is on otherwise"),
        pytest.param("shape_padding", True, "asked", id="no stopwatch decides what is padded otherwise"),
    ],
)
def test_options_reach_inductor(project: pytest.Pytester, option: str, asked: bool, as_eager: str) -> None:
    """Eagerly, nothing sets an option: the entry that is compiled with another one returns something else."""
    project.makepyfile(
        observed=f"""
        import torch
        from pytest_reinplace import Program
        from torch._inductor import config

        def step(x, index, value):
            x[index] = value
            return x * (2 if config.{option} is {asked} else 3)

        def build(device):
            return Program(step, (torch.ones(4), torch.tensor([0]), torch.ones(1)))
        """
    )
    entry = "builder: observed:build\nclones: {exact: []}\n"
    write(project, f"{entry}options: {{{option}: {str(asked).lower()}}}\n", "asked")
    write(project, entry, "silent")
    project.runpytest("-k", as_eager).assert_outcomes(passed=1, deselected=1)
    project.runpytest("-k", f"not {as_eager}").assert_outcomes(failed=1, deselected=1)


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_program_is_torn_down_whatever_becomes_of_it(project: pytest.Pytester, outcome: str) -> None:
    project.makepyfile(
        torn="""
        import torch
        from pytest_reinplace import Program

        def passed(x, index):
            x[index] = 1.0

        def failed(x, index):
            raise ValueError("no such index")

        def build(device, outcome):
            args = torch.zeros(4), torch.tensor([0])
            return Program(globals()[outcome], args, teardown=lambda: print("TORN DOWN"))
        """
    )
    write(project, f"builder: torn:build\nargs: {{outcome: {outcome}}}\nclones: {{exact: []}}\n")
    result = project.runpytest("-s")
    result.assert_outcomes(**{outcome: 1})
    assert [line for line in result.outlines if "TORN DOWN" in line][1:] == []
    result.stdout.fnmatch_lines(["*TORN DOWN*"])


def test_reports_travel_as_user_properties(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        def pytest_runtest_logreport(report):
            if report.when == "call":
                print("PROPERTY", dict(report.user_properties)["reinplace"])
        """
    )
    write(project, "builder: builders:keep\nclones: {exact: []}\n")
    result = project.runpytest("-s")
    (line,) = [line for line in result.outlines if "PROPERTY" in line]
    (report,) = json.loads(line.split("PROPERTY", 1)[1])
    assert report["clones"] == ["aten::index_put.self"]
    assert report["clone_bytes"] == 32


HOSTILE = "</td><script>alert(1)</script> | ![i](x) `code` ::error:: %0A 漢"


def test_an_entry_with_a_hostile_name_does_no_harm_in_any_report(
    compiling: pytest.Pytester, warm: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    compiling.makepyfile(builders=BUILDERS)
    entry = ENTRY.replace("update", "keep").replace("exact: []", "exact: ['aten::index_put.self']")
    (compiling.path / f"one{SUFFIX}").write_text(f"{entry}name: {json.dumps(HOSTILE)}\n")
    files = [f"--reinplace-{kind}=out.{kind}" for kind in ("json", "markdown", "html")]
    result = compiling.runpytest_inprocess("--reinplace-report", *files, f"one{SUFFIX}")
    result.assert_outcomes(passed=1)
    assert list(json.loads((compiling.path / "out.json").read_text())["tests"]) == [f"one{SUFFIX}::{HOSTILE}"]
    for kind in ("markdown", "html"):
        text = (compiling.path / f"out.{kind}").read_text()
        assert "<script>alert" not in text
        assert "![i]" not in text if kind == "markdown" else "&lt;script&gt;alert(1)" in text
    annotations = [line for line in result.outlines if line.startswith("::")]
    assert len(annotations) == 1
    assert annotations[0].startswith("::warning ")
