"""--reinplace-ledger: what passes did, in all reports; and the limits that need it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from pytest_reinplace.reports.document import schema

from .test_report_schema import closed

jsonschema = pytest.importorskip("jsonschema")

# A pass that copies each result, and one that does so for nothing more.
MINE = """
import torch
from torch._inductor.custom_graph_pass import CustomGraphPass

class Copying(CustomGraphPass):
    times = 1

    def __call__(self, graph):
        output = graph.output_node()
        (result,) = output.args[0]
        for _ in range(self.times):
            with graph.inserting_before(output):
                new = graph.call_function(torch.ops.aten.clone.default, (result,))
            new.meta.update(result.meta)
            result = new
        output.args = ((result,),)

    def uuid(self):
        return None

class Twice(Copying):
    times = 2

class Idle(Copying):
    def __call__(self, graph):
        pass
"""
OWN = """
import mine, pytest, torch

@pytest.mark.parametrize("n", range(COUNT))
def test_it(n):
    with torch._inductor.config.patch(post_grad_custom_post_pass=mine.PASS()):
        torch.compile(lambda x: (x * 2).relu())(torch.ones(4, 4))
"""


@pytest.fixture
def project(compiling: pytest.Pytester) -> pytest.Pytester:
    compiling.makepyfile(mine=MINE)
    return compiling


def run(project: pytest.Pytester, *options: str, name: str = "Copying", count: int = 1) -> pytest.RunResult:
    project.makepyfile(test_own=OWN.replace("PASS", name).replace("COUNT", str(count)))
    torch._dynamo.reset()
    return project.runpytest_inprocess(*options)


def written(project: pytest.Pytester, name: str = "out.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.path / name).read_text())
    return found


def test_what_a_pass_did_is_in_the_json_and_described(project: pytest.Pytester) -> None:
    run(project, "--reinplace-ledger", "--reinplace-json=out.json").assert_outcomes(passed=1)
    report = written(project)
    jsonschema.validate(report, closed(schema()))
    ((graph,),) = (test["graphs"] for test in report["tests"].values())
    (found,) = graph["applications"]
    assert found.pop("seconds") > 0
    assert found == {
        "number": 0,
        "graph": "[fw 0/0]",
        "stage": "post_grad",
        "pass": "post_grad_custom_post_pass",
        "rule": "",
        "node": "clone_default",
        "source": "test_own.py:6",
        "nodes": 1,
        "copies_added": ["aten::clone.self"],
        "copies_removed": [],
        "copy_bytes": 64,
        "finding": None,
    }
    assert graph["unfollowed"] == ""


def test_the_terminal_has_it_pass_by_pass(project: pytest.Pytester) -> None:
    result = run(project, "--reinplace-ledger", "--reinplace-report")
    result.stdout.fnmatch_lines(
        [
            "pass by pass: 1 application in 1 test",
            "  [[]fw 0/0] 0 post_grad / post_grad_custom_post_pass, node clone_default at",
            "      test_own.py:6: +1 nodes; new copies: aten::clone.self; +64 B copied (*",
        ]
    )


def test_many_applications_are_summed_by_pass(project: pytest.Pytester) -> None:
    options = "--reinplace-ledger", "--reinplace-report", "--reinplace-markdown=out.md"
    result = run(project, *options, count=13)
    result.stdout.fnmatch_lines(
        [
            "pass by pass: 13 applications in 13 tests",
            "  times  nodes  copies  bytes  *ms  pass*",
            "     13    +13     +13   +832  *  post_grad / post_grad_custom_post_pass",
        ]
    )
    result.stdout.no_fnmatch_line("*node clone_default*")
    text = (project.path / "out.md").read_text()
    assert "<details><summary>pass by pass: 13 applications in 13 tests</summary>" in text
    assert "| 13 | +13 | +13 | +832 |" in text
    result = run(project, *options, "-v", count=13)
    result.stdout.fnmatch_lines(["  test_own.py::test_it[[]12] [[]fw 0/0] 0 post_grad / *"])


def test_markdown_and_the_page_have_it(project: pytest.Pytester) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("pygments")
    run(project, "--reinplace-ledger", "--reinplace-markdown=out.md", "--reinplace-html=out.html")
    markdown = (project.path / "out.md").read_text()
    assert "pass by pass: 1 application in 1 test" in markdown
    assert "new copies" in markdown
    page = (project.path / "out.html").read_text()
    assert "passes that changed it: 1 application" in page
    assert "+1 nodes; new copies: aten::clone.self; +64 B copied" in page


def test_a_wrong_rule_is_a_finding_of_all_reports(project: pytest.Pytester) -> None:
    project.makepyfile(
        wrong="""
        import torch

        def negate(graph: torch.fx.Graph) -> None:
            for node in graph.find_nodes(op="call_function", target=torch.ops.aten.relu.default):
                node.target = torch.ops.aten.neg.default
        """
    )
    options = "--reinplace-verify-rules", "--reinplace-pass=wrong:negate", "--reinplace-report"
    result = run(project, *options, "--reinplace-markdown=out.md", "-v", name="Idle")
    result.assert_outcomes(failed=1)
    told = "a pass breaks the contract: 0 post_grad / reinplace_inplaceable_ops/wrong:negate, node relu"
    assert told in " ".join(result.stdout.str().split())
    assert "Findings" in (project.path / "out.md").read_text()


def test_nothing_changed_is_said(project: pytest.Pytester) -> None:
    result = run(project, "--reinplace-ledger", "--reinplace-report", name="Idle")
    result.stdout.fnmatch_lines(["pass by pass: no pass changed anything"])


def test_without_it_there_is_no_section(project: pytest.Pytester) -> None:
    result = run(project, "--reinplace-report", "--reinplace-json=out.json")
    result.stdout.no_fnmatch_line("*pass by pass*")
    (test,) = written(project)["tests"].values()
    assert all("applications" not in graph for graph in test["graphs"])


def test_workers_send_it_and_junit_has_none_of_it(project: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    run(project, "--reinplace-ledger", "--reinplace-json=out.json", "--junitxml=out.xml", "-n1")
    (test,) = written(project)["tests"].values()
    assert [len(graph["applications"]) for graph in test["graphs"]] == [1]
    assert "post_grad_custom_post_pass" not in (project.path / "out.xml").read_text()


GATE = "--reinplace-compare=old.json", "--reinplace-fail-on=pass_copies:0"


@pytest.mark.parametrize(("name", "fails"), [("Twice", True), ("Copying", False)])
def test_a_limit_on_copies_of_passes_records_by_itself(
    project: pytest.Pytester, name: str, fails: bool
) -> None:
    run(project, "--reinplace-ledger", "--reinplace-json=old.json")
    result = run(project, *GATE, name=name)
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if fails else pytest.ExitCode.OK)
    if fails:
        result.stdout.fnmatch_lines(["*pass copies 1 → 2, +1, +100.0 %; allowed is pass_copies:0; more by *"])


def test_a_pass_that_matches_no_more_fails_the_run(project: pytest.Pytester) -> None:
    run(project, "--reinplace-ledger", "--reinplace-json=old.json")
    gate = "--reinplace-compare=old.json", "--reinplace-fail-on=matches:post_grad_custom_post_pass:0"
    assert run(project, *gate).ret == pytest.ExitCode.OK
    result = run(project, *gate, name="Idle")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*post_grad_custom_post_pass fired 1 time before, 0 times now; allowed is *"]
    )


@pytest.mark.parametrize("text", ["pass_copies:0", "pass_seconds:20%", "matches:x:0"])
def test_a_limit_without_a_report_is_refused(project: pytest.Pytester, text: str) -> None:
    result = run(project, "--reinplace-measure", f"--reinplace-fail-on={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    metric = text.partition(":")[0]
    result.stderr.fnmatch_lines(
        [f"ERROR: --reinplace-fail-on: expected --reinplace-compare=PATH with {metric}*"]
    )


def test_the_pass_under_test_is_named_inside_the_stage_that_it_takes_the_place_of(
    compiling: pytest.Pytester,
) -> None:
    compiling.makepyfile(
        my_passes="""
        import torch

        def doubled(gm):
            (output,) = gm.graph.find_nodes(op="output")
            (result, *rest) = output.args[0]
            with gm.graph.inserting_before(output):
                new = gm.graph.call_function(torch.ops.aten.clone.default, (result,))
            new.meta.update(result.meta)
            output.args = ((new, *rest),)
        """,
        test_it="""
        import torch

        def test_it(reinplace):
            torch.compile(lambda x: x * 2)(torch.ones(4))
        """,
    )
    arguments = ["--reinplace-pass=my_passes:doubled", "--reinplace-ledger", "--reinplace-backend=graph"]
    compiling.runpytest_inprocess(*arguments, "--reinplace-json=out.json").assert_outcomes(passed=1)
    (graph,) = json.loads((compiling.path / "out.json").read_text())["tests"]["test_it.py::test_it"]["graphs"]
    assert "reinplace_inplaceable_ops/my_passes:doubled" in [a["pass"] for a in graph["applications"]]
