"""--reinplace-verify."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.passes.verify import EquivalenceError, assert_equivalent

from . import miscompiled

PROGRAMS = Path(miscompiled.__file__)
ON_213 = torch.__version__.startswith("2.13.")

# A pass that is wrong on every torch: it writes in place whatever is read later.
GREEDY = """
import torch
import torch._inductor.custom_graph_pass

def greedy(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.index_put.default):
        node.target = torch.ops.aten.index_put_.default

def idle(graph: torch.fx.Graph) -> None:
    pass

class Custom(torch._inductor.custom_graph_pass.CustomGraphPass):
    def __call__(self, graph):
        greedy(graph)

    def uuid(self):
        return None
"""

OWN = """
import torch

def keep(x):
    y = x * 2
    new = y.index_put((torch.tensor([0]),), torch.ones(1))
    return new, y.sum()

def test_keep():
    torch.compile(keep)(torch.ones(8))
"""


@pytest.fixture
def project(compiling: pytest.Pytester) -> pytest.Pytester:
    compiling.makepyfile(greedy=GREEDY)
    return compiling


def verify(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    torch._dynamo.reset()
    return project.runpytest_inprocess("--reinplace-verify", *options)


def greedily(project: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    """Run tests with the wrong pass."""
    project.makepyfile(test_own=source)
    return verify(project, "--reinplace-pass=greedy:greedy", *options)


def run_here(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """Run a program in this process, where torch is loaded: its exit status, and what it printed."""
    torch._dynamo.reset()
    capsys.readouterr()
    status: object = 0
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        status = end.code or 0
    finally:
        sys.modules.pop("greedy", None)  # another project has another
    return status, capsys.readouterr().out


def statuses(project: pytest.Pytester, name: str = "out.json") -> dict[str, str]:
    report = json.loads((project.path / name).read_text())
    return {
        nodeid.partition("::")[2]: graph["verified"]["status"]
        for nodeid, test in report["tests"].items()
        for graph in test["graphs"]
    }


# -- finding -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [*miscompiled.WRONG, *miscompiled.RIGHT], ids=lambda p: p.__name__)
def test_it_finds_what_is_wrong_and_nothing_else(program: Any) -> None:
    """On whatever torch: the verdict on the graph is the verdict on the program."""
    x = torch.arange(16.0).view(4, 4)
    with Capture("inductor", "graph", verified=True) as capture:
        compiled = torch.compile(program)
        compiled(x.clone())
        try:
            assert_equivalent(program, compiled, [x])
            is_wrong = False
        except EquivalenceError:
            is_wrong = True
    found = [graph.verified.status for graph in capture.checked_graphs if graph.verified]
    assert found == ["different" if is_wrong else "same"]
    if ON_213:
        assert is_wrong == (program in miscompiled.WRONG)


@pytest.mark.skipif(not ON_213, reason="which programs Inductor gets wrong is written down for torch 2.13")
def test_known_miscompiles_are_found_in_an_unchanged_file(project: pytest.Pytester) -> None:
    shutil.copy(PROGRAMS, project.path / "test_programs.py")
    result = verify(project, "--reinplace-json=out.json")
    result.assert_outcomes(failed=len(miscompiled.WRONG), passed=len(miscompiled.RIGHT))
    result.stdout.fnmatch_lines(
        [
            "graph [[]fw 0/0] breaks the contract: output 0 (add): 16 of 16 elements differ, *"
            "(pass inductor, backend graph)",
            "  first node that differs: auto_functionalized_v2 (miscompiled::add_to) at test_programs.py:*",
            "  wrong since Inductor's stage reinplace_inplaceable_ops",
            "  run: python *test_programs.py-test_wrong-op_on_a_copy---fw-0-0.py (4 operators; *)",
            "*= reinplace verify =*",
            "8 graphs checked, 5 wrong, 0 not checked",
            "  test_programs.py::test_wrong[[]op_on_a_copy] [[]fw 0/0] is wrong: output 0 (add): *",
        ],
        consecutive=False,
    )
    found = statuses(project)
    assert {name for name, status in found.items() if status == "different"} == {
        f"test_wrong[{program.__name__}]" for program in miscompiled.WRONG
    }


def test_our_pass_gets_them_right(project: pytest.Pytester) -> None:
    shutil.copy(PROGRAMS, project.path / "test_programs.py")
    result = verify(project, "--reinplace-pass=exact")
    result.assert_outcomes(passed=len(miscompiled.WRONG) + len(miscompiled.RIGHT))
    result.stdout.fnmatch_lines(["8 graphs checked, 0 wrong, 0 not checked"])


def test_a_pass_of_ones_own(project: pytest.Pytester) -> None:
    result = greedily(project, OWN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "graph [[]fw 0/0] breaks the contract: output 1 (sum_1): 1 of 1 elements differ, first at*",
            "  first node that differs: * at test_own.py:*",
            "  wrong since pass greedy:greedy",
        ]
    )
    twin = verify(project, "--reinplace-pass=greedy:idle")
    twin.assert_outcomes(passed=1)
    twin.stdout.fnmatch_lines(["1 graph checked, 0 wrong, 0 not checked"])


@pytest.mark.parametrize("custom", ["greedy.greedy", "greedy.Custom()"])
def test_a_custom_pass_of_the_program_is_named_and_runs_in_the_small_program(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str], custom: str
) -> None:
    source = OWN.replace("import torch", "import greedy, torch").replace(
        "    torch.compile(keep)(torch.ones(8))",
        f"    with torch._inductor.config.patch(post_grad_custom_post_pass={custom}):\n"
        "        torch.compile(keep)(torch.ones(8))",
    )
    project.makepyfile(test_own=source)
    result = verify(project, "--reinplace-json=out.json")
    result.assert_outcomes(failed=1)
    name = custom.replace(".", ":").removesuffix("()")
    result.stdout.fnmatch_lines(["graph * breaks the contract: *", f"  wrong since pass {name}"])
    report = json.loads((project.path / "out.json").read_text())
    (graph,) = (graph for test in report["tests"].values() for graph in test["graphs"])
    assert (graph["verified"]["stage"], graph["verified"]["pass"]) == ("post_grad_custom_post_pass", name)
    (path,) = (project.path / ".pytest_cache" / "d" / "reinplace").glob("*.py")
    status, out = run_here(path, capsys)
    assert status == 1
    assert "elements differ" in out


def test_the_backward_is_checked_when_it_runs(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_own="""
        import torch
        from programs import *

        def test_backward():
            torch.compile(read_row)(*inputs(read_row)).backward()
        """
    )
    verify(project, "--reinplace-json=out.json").assert_outcomes(passed=1)
    report = json.loads((project.path / "out.json").read_text())
    (test,) = report["tests"].values()
    found = {graph["graph"]: graph["verified"]["status"] for graph in test["graphs"]}
    assert found == {"[fw 0/0]": "same", "[bw 0/0]": "same"}


def test_the_whole_of_inductor(project: pytest.Pytester) -> None:
    result = greedily(project, OWN, "--reinplace-backend=inductor")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["graph * breaks the contract: *(pass greedy:greedy, backend inductor)"])


# -- the program that shows it ---------------------------------------------------------------------------


def test_the_program_that_is_written_fails_as_the_graph_does(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    result = greedily(project, OWN)
    (path,) = (project.path / ".pytest_cache" / "d" / "reinplace").glob("*.py")
    assert f"run: python {path.relative_to(project.path)}" in result.stdout.str()
    assert path.read_text() in result.stdout.str()
    paths = [str(project.path), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    ran = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, cwd=project.path, env=environment
    )
    assert ran.returncode == 1, ran.stderr
    assert re.search(r"output \d \(\w+\): \d+ of \d+ elements differ", ran.stdout)
    (project.path / "greedy.py").write_text(GREEDY.replace("index_put_.default", "index_put.default"))
    status, out = run_here(path, capsys)
    assert (status, out.splitlines()[-1]) == (0, "both do the same")


def test_without_a_cache_the_program_is_only_printed(project: pytest.Pytester) -> None:
    result = greedily(project, OWN, "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["  a program of * operators that shows it is below", "*def graph():*"])
    assert not (project.path / ".pytest_cache").exists()


# -- a test that fails, and one that does not --------------------------------------------------------------


def test_a_test_that_fails_by_itself_shows_it_too_and_once(project: pytest.Pytester) -> None:
    result = greedily(project, OWN + "    assert False, 'its own'\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*its own*", "*Captured reinplace verify call*", "graph * breaks the contract*"]
    )
    assert result.stdout.str().count("breaks the contract") == 1


@pytest.mark.parametrize("when", ["setup", "teardown", "skip"])
def test_what_a_fixture_or_a_skipped_test_compiles_counts(project: pytest.Pytester, when: str) -> None:
    source = OWN.replace("def test_keep():\n    torch.compile(keep)(torch.ones(8))\n", "")
    source += {
        "setup": """
import pytest

@pytest.fixture
def compiled():
    torch.compile(keep)(torch.ones(8))

def test_it(compiled): pass
""",
        "teardown": """
import pytest

@pytest.fixture
def compiled():
    yield
    torch.compile(keep)(torch.ones(8))

def test_it(compiled): pass
""",
        "skip": """
import pytest

def test_it():
    torch.compile(keep)(torch.ones(8))
    pytest.skip("after all")
""",
    }[when]
    result = greedily(project, source)
    assert result.ret == 1
    expected = {
        "setup": {"failed": 1},
        "teardown": {"passed": 1, "errors": 1},
        "skip": {"skipped": 1, "errors": 1},
    }
    result.assert_outcomes(**expected[when])
    assert result.stdout.str().count("breaks the contract") >= 1


# -- what is not checked -----------------------------------------------------------------------------------


def test_what_is_not_checked_is_said(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_own="""
        import torch
        from torch._inductor.compile_fx import compile_fx  # by its name, before anything is watched

        def test_never_called():
            torch.compile(lambda x: (x * 2).sum())(torch.ones(3, requires_grad=True))

        def test_compiled_by_hand():
            gm = torch.fx.symbolic_trace(lambda x: (x * 2,))
            compile_fx(gm, [torch.ones(3)])

        def test_effect():
            torch.compile(lambda x: (torch._higher_order_ops.print("{}", x), x + 1)[1])(torch.ones(3))
        """
    )
    result = verify(project, "--reinplace-json=out.json")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "*= reinplace verify =*",
            "1 graph checked, 0 wrong, 2 not checked",
            "  test_own.py::test_compiled_by_hand [[]fw] not checked: it was never called with real tensors",
            "  test_own.py::test_effect [[]fw 0/0] not checked: with_effects is an effect, *::print",
        ]
    )
    found = statuses(project)
    assert found["test_effect"] == found["test_compiled_by_hand"] == "not-checked"


def test_a_call_with_fake_tensors_is_not_the_one(project: pytest.Pytester) -> None:
    with Capture("inductor", "graph", verified=True) as capture:
        from torch._inductor.compile_fx import compile_fx
        from torch._subclasses.fake_tensor import FakeTensorMode

        gm = torch.fx.symbolic_trace(lambda x: (x * 2,))
        compiled = compile_fx(gm, [torch.ones(3)])
        with FakeTensorMode():
            compiled(torch.ones(3))
        assert capture.checked_graphs[0].verified.status == "not-checked"  # type: ignore[union-attr]
        compiled(torch.ones(3))
        assert capture.checked_graphs[0].verified.status == "same"  # type: ignore[union-attr]


def test_a_compiler_whose_calls_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_reinplace.capture.pass_under_test import find
    from pytest_reinplace.capture.verifier import Verifier

    verifier = Verifier(find("inductor"), checks_all=True)
    gm = torch.fx.symbolic_trace(lambda x: x * 2)
    watched = verifier.compiled("[fw]", gm, {}, {})
    assert watched.verified.text == "its post-grad passes did not run in this process"
    watched.note(gm)
    assert watched.verified.text == "it was never called with real tensors"
    assert watched.wrapped("a path") == "a path"
    assert watched.verified.text == "it was compiled to a str, whose calls are not seen"


def test_a_defect_of_ours_breaks_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("x")

    monkeypatch.setattr("pytest_reinplace.passes.verify.check", broken)
    with Capture("inductor", "graph", verified=True) as capture:
        assert torch.compile(lambda x: x + 1)(torch.ones(2)).tolist() == [2, 2]
    (graph,) = capture.checked_graphs
    assert graph.verified is not None and graph.verified.status == "not-checked"
    assert graph.verified.text == "checking it failed, which is a defect of pytest-reinplace: KeyError: 'x'"


def test_a_wrong_schedule_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the graph computes, and although it is compiled once more."""
    monkeypatch.setattr(
        "pytest_reinplace.passes.inductor.schedule.check.problem", lambda nodes: "add reads x late"
    )
    with Capture("exact", "inductor", verified=True) as capture:
        assert torch.compile(lambda x: x + 1)(torch.ones(2)).tolist() == [2, 2]
    found = [graph.verified for graph in capture.checked_graphs]
    assert found and all(one is not None and one.is_different for one in found)
    assert {one.text for one in found if one} == {"Inductor's schedule is wrong: add reads x late"}


# -- nothing else is changed ---------------------------------------------------------------------------------


def test_a_test_computes_the_same_with_it(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_own="""
        import json, torch

        def step(x, w, mask):
            mask.mul_(2)
            return torch.nn.functional.dropout(torch.relu(x @ w), 0.5) * mask

        def test_it(pytestconfig):
            torch.manual_seed(3)
            x, w = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
            mask = torch.ones(4)
            compiled = torch.compile(step)
            results = [compiled(x, w, mask) for _ in range(2)]
            sum(r.sum() for r in results).backward()
            values = [*results, x.grad, w.grad, mask, torch.rand(3)]
            name = "with" if pytestconfig.option.reinplace_verify else "without"
            with open(f"{name}.json", "w") as file:
                json.dump([v.tolist() for v in values], file)
        """
    )
    verify(project).assert_outcomes(passed=1)
    torch._dynamo.reset()
    project.runpytest_inprocess("--reinplace-report").assert_outcomes(passed=1)
    one, two = ((project.path / f"{name}.json").read_text() for name in ("with", "without"))
    assert one == two


def test_without_it_nothing_is_checked_and_torch_is_not_imported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            assert "torch" not in sys.modules
            assert "pytest_reinplace.capture.verifier" not in sys.modules
        """
    )
    pytester.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_with_it_a_test_that_imports_torch_itself_is_checked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_it():
            import torch
            torch.compile(lambda x: x + 1)(torch.ones(3))
        """
    )
    options = "--reinplace-verify", "--reinplace-backend=graph", "-p", "no:hypothesispytest"
    result = pytester.runpytest_subprocess(*options)
    result.stdout.fnmatch_lines(["1 graph checked, 0 wrong, 0 not checked"])


@pytest.mark.parametrize("where", ["environment", "ini"])
def test_it_can_be_set_elsewhere(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "environment":
        monkeypatch.setenv("REINPLACE_VERIFY", "1")
    else:
        project.makeini("[pytest]\nreinplace_backend = graph\nreinplace_verify = true\n")
    project.makepyfile(test_own=OWN)
    result = project.runpytest_inprocess()
    result.stdout.fnmatch_lines(["1 graph checked, 0 wrong, 0 not checked"])


def test_a_wrong_value_is_refused(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REINPLACE_VERIFY", "perhaps")
    result = project.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*environment variable REINPLACE_VERIFY: expected one of 1, true,*"])


# -- workers, entries, reports ---------------------------------------------------------------------------


def test_a_worker_says_the_same(project: pytest.Pytester) -> None:
    """One: what comes from several is put together alike with and without the check (``test_xdist``)."""
    pytest.importorskip("xdist")
    project.makepyfile(test_other=OWN.replace("y.sum()", "y.shape[0]"))
    result = greedily(project, OWN, "--reinplace-json=serial.json")
    result.assert_outcomes(failed=1, passed=1)
    again = project.runpytest_subprocess(
        *("--reinplace-verify", "--reinplace-pass=greedy:greedy", "--reinplace-json=parallel.json", "-n", "1")
    )
    again.assert_outcomes(failed=1, passed=1)
    again.stdout.fnmatch_lines(["2 graphs checked, 1 wrong, 0 not checked"])
    assert "def graph():" in again.stdout.str()
    assert (project.path / "serial.json").read_bytes() == (project.path / "parallel.json").read_bytes()


def test_entries_are_checked(project: pytest.Pytester) -> None:
    project.makepyfile(
        build="""
        import torch
        from pytest_reinplace import Program

        def keep(x):
            y = x * 2
            new = y.index_put((torch.tensor([0]),), torch.ones(1))
            return new, y.sum()

        def build(device):
            return Program(keep, (torch.ones(8),), {})
        """
    )
    (project.path / "keep.reinplace.yaml").write_text(
        "description: keeps an old value\nbuilder: build:build\npresets:\n  cpu: {}\nclones:\n  exact: []\n"
    )
    result = verify(project, "keep.reinplace.yaml")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 graph checked, 0 wrong, 0 not checked"])


def test_reports_say_what_was_checked(project: pytest.Pytester) -> None:
    greedily(project, OWN, "--reinplace-json=out.json")
    report = json.loads((project.path / "out.json").read_text())
    (test,) = report["tests"].values()
    verified = test["graphs"][0]["verified"]
    assert verified["status"] == "different" and verified["source"].startswith("test_own.py:")
    project.runpytest_inprocess("--reinplace-json=out.json")
    report = json.loads((project.path / "out.json").read_text())
    assert [g["verified"] for t in report["tests"].values() for g in t["graphs"]] == [None]
