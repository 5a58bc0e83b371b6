"""Inductor's own reinplacing, judged by the oracle: right where it is right, wrong where it is wrong."""

from __future__ import annotations

import pytest
import torch
from torch.fx import GraphModule

from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.oracle import command
from pytest_reinplace.passes.oracle.verdict import judged
from pytest_reinplace.passes.strategies import RandomGraph
from pytest_reinplace.passes.verify import assert_equivalent
from pytest_reinplace.passes.verify.inductor_pass import Inductor, inductor, inductor_stack
from pytest_reinplace.passes.verify.optimum.search import copied_bytes

aten = torch.ops.aten


def updated(*, write_back: bool, version: int = 2) -> RandomGraph:
    """An operator that writes an input of 64 bytes, which the caller sees written or not."""
    build = GraphBuilder()
    x, other = build.placeholder(torch.arange(8)), build.placeholder(torch.arange(8) * 3)
    op = adversary.operator("mix")
    new = build.v1(op, x=x, other=other) if version == 1 else build.v2(op, {"x": (x, x)}, other=other)
    if write_back:
        build.call(aten.copy_.default, x, new[-1])
    total = build.call(aten.sum.default, new[-1])
    return RandomGraph(build.finished([total]), build.inputs, [])


def twice(tensor: torch.Tensor) -> RandomGraph:
    """An operator that is given one tensor to write and to read."""
    build = GraphBuilder()
    x = build.call(aten.neg.default, build.placeholder(tensor))
    new = build.v2(adversary.operator("mix"), {"x": (x, x)}, other=x)
    return RandomGraph(build.finished([new[-1]]), build.inputs, [])


def scattered() -> RandomGraph:
    """A row of an input that is written, and the input with it."""
    build = GraphBuilder()
    x, row = build.placeholder(torch.arange(12).view(3, 4)), build.placeholder(torch.arange(4) * 5)
    new = build.call(aten.select_scatter.default, x, row, 0, 1)
    build.call(aten.copy_.default, x, new)
    return RandomGraph(build.finished([build.call(aten.sum.default, new)]), build.inputs, [])


@pytest.mark.parametrize("version", [1, 2])
def test_what_inductor_writes_in_place_is_right_and_copies_nothing(version: int) -> None:
    verdict = judged(updated(write_back=True, version=version), inductor)
    assert (verdict.problem, verdict.before, verdict.after, verdict.least) == (None, 128, 0, 0)


@pytest.mark.parametrize("version", [1, 2])
def test_what_inductor_must_copy_counts_as_copied(version: int) -> None:
    verdict = judged(updated(write_back=False, version=version), inductor)
    assert (verdict.problem, verdict.before, verdict.after, verdict.least) == (None, 64, 64, 64)


def test_a_scatter_into_an_input_is_written_in_place() -> None:
    verdict = judged(scattered(), inductor)
    assert (verdict.problem, verdict.after) == (None, 0)


def test_an_operand_that_is_read_and_written_is_judged_wrong() -> None:
    assert judged(twice(torch.arange(8)), inductor).problem == "output"


@pytest.mark.parametrize(("marks", "problem", "after"), [(None, None, 64), ([0], None, 64), ([], "input", 0)])
def test_the_marks_on_wrappers_are_what_is_run(
    marks: list[int] | None, problem: str | None, after: int
) -> None:
    def marking(gm: GraphModule) -> None:
        (wrapper,) = (n for n in gm.graph.nodes if "auto_functionalized" in str(n.target))
        wrapper.meta.pop("only_clone_these_tensors", None)
        if marks is not None:
            wrapper.meta["only_clone_these_tensors"] = marks

    verdict = judged(updated(write_back=False), marking)
    assert (verdict.problem, verdict.after) == (problem, after if problem is None else 0)


@pytest.mark.parametrize(
    "graph", [updated(write_back=True), updated(write_back=False, version=1), scattered()]
)
def test_all_steps_together_leave_no_wrapper_and_compute_the_same(graph: RandomGraph) -> None:
    gm = graph.copy()
    stage = Inductor(gm)
    stage.canonicalize()
    stage.decide()
    stage.write_scatters()
    stage.correct_marks()
    stage.write_wrappers()
    gm.recompile()
    targets = {str(n.target) for n in gm.graph.nodes}
    assert not any("functional" in t or "_scatter" in t for t in targets)
    assert_equivalent(graph.gm, gm, graph.inputs)


def test_the_stack_drops_clones_too() -> None:
    build = GraphBuilder()
    x = build.call(aten.neg.default, build.placeholder(torch.arange(8)))
    copy = build.call(aten.clone.default, x)
    graph = RandomGraph(build.finished([build.call(aten.sum.default, copy)]), build.inputs, [])
    assert (judged(graph, inductor).after, judged(graph, inductor_stack).after) == (64, 0)
    assert copied_bytes(graph.gm) == 64


def test_one_command_prints_both_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--graphs", "30", "--beside", "inductor"]) == 0
    head, ours, theirs, *_ = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["pass", "graphs"]
    assert ours.split()[:6] == ["exact", "30", "0", "0", "0", "0"]
    assert theirs.split()[:2] == ["inductor", "30"] and int(theirs.split()[5]) > 0


def test_a_pass_of_that_name_is_judged_alone_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--graphs", "10", "--pass", "inductor", "--no-optimum", "--show", "0"]) == 1
    assert capsys.readouterr().out.startswith("graphs 10  wrong ")
