"""Stages of Inductor's that run around the pass under test; which there are depends on torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace import passes
from pytest_reinplace.capture import install, pass_under_test
from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.capture.replay import Replay
from pytest_reinplace.passes import GraphError, Reason, _torch
from pytest_reinplace.passes.inductor import stage
from pytest_reinplace.passes.inductor.schedule import attempts, check
from pytest_reinplace.session.verdict import clones_are

SCATTER = "aten::slice_scatter.self"


def products(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty(8, 4)
    out[:4] = x @ w
    out[4:] = x @ (w + 1)
    return out


def products_of_a_changed_input(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty(8, 4)
    out[:4] = x @ w
    x.add_(1)
    out[4:] = x @ w
    return out


def inputs(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty(8, 4)
    out[:4] = x
    out[4:] = w
    x.add_(1)
    return out


def first_kept(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = torch.empty(8, 4)
    out[:4] = x @ w
    whole = torch.slice_scatter(out, w @ x, 0, 4, 8)
    return whole, out[:4] + whole[4:]


PROGRAMS = [products, products_of_a_changed_input, inputs, first_kept]
PASSES = ["inductor", "exact", "post_grad", "tests.plugin.passes:stock", "tests.plugin.passes:nothing"]


@pytest.mark.usefixtures("unoptimized")
@pytest.mark.parametrize("backend", ["graph", "inductor"])
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_parts_of_an_empty_buffer_are_judged_and_right(
    program: Callable[..., Any], name: str, backend: str
) -> None:
    """From torch 2.15 on a stage before reinplacing writes them in place, after which no pass could judge."""
    x, w = torch.arange(16.0).reshape(4, 4), torch.ones(4, 4)
    wanted_x = x.clone()
    wanted = program(wanted_x, w)
    with Capture(name, backend, verified=True) as capture:
        result = torch.compile(program)(x, w)
        (graph,) = capture.checked_graphs
    assert not graph.problem
    assert not graph.suspicious
    assert [o.label for o in graph.report.outcomes].count(SCATTER) == 2
    assert graph.verified is not None
    assert graph.verified.status == "same"
    torch.testing.assert_close(result, wanted)
    torch.testing.assert_close(x, wanted_x)


def test_our_pass_writes_them_in_place() -> None:
    with Capture("exact", "graph") as capture:
        torch.compile(products)(torch.ones(4, 4), torch.ones(4, 4))
    assert capture.report.reinplaced == [SCATTER, SCATTER]


def test_a_pass_that_leaves_them_is_not_helped() -> None:
    """The twin: what the stage would have done is not what the pass under test did."""
    with Capture("tests.plugin.passes:nothing", "graph") as capture:
        torch.compile(products)(torch.ones(4, 4), torch.ones(4, 4))
    assert capture.graphs[0].after.count("slice_scatter.default") == 2


def summed_twice(x: torch.Tensor) -> torch.Tensor:
    reduce, wait = _torch.collective("all_reduce"), _torch.collective("wait_tensor")
    once = wait(reduce(x * 2, "sum", "0"))
    return wait(reduce(once, "sum", "0")) + 1  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", PASSES)
def test_every_collective_in_place_is_waited_for(name: str) -> None:
    """Two in one buffer are waited for by its one name; a stage of torch 2.15 drops such a second wait."""
    with FakeTensorMode():
        gm = make_fx(summed_twice)(torch.empty(4))
    under_test = pass_under_test.find(name)
    replay = Replay(under_test, install.options(under_test, {}), is_inference=True)
    _, rewritten = replay.run(gm, [torch.zeros(4)])
    assert str(rewritten.graph).count("wait_tensor.default]") == 2
    assert str(rewritten.graph).count("all_reduce") >= 2
    in_place = str(rewritten.graph).count("all_reduce_.default]")
    assert in_place == (0 if name.endswith("nothing") else 2)


@pytest.mark.parametrize(("name", "is_shared"), [("inductor", True), ("exact", True), ("post_grad", False)])
def test_rules_of_ours_take_the_place_of_those_that_give_an_input_back(name: str, is_shared: bool) -> None:
    """Inductor returns ``x`` itself for what is put together of its pieces."""
    x, seen = torch.arange(10.0).reshape(2, 5), list[str]()
    own = {"post_grad_custom_pre_pass": lambda graph: seen.append(str(graph))}
    with Capture(name, "graph") as capture, torch._inductor.config.patch(own):
        result = torch.compile(lambda x: torch.cat(torch.split(x, [2, 3], 1), 1))(x)
    assert (result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()) is is_shared
    assert capture.graphs[0].pass_name == name
    assert len(seen) == 1 and "cat.default" in seen[0]  # a pass of the user's is there before our rules


def largest(x: torch.Tensor, index: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    out[index] = x
    return torch.zeros(4).scatter_reduce_(0, index, x, "amax") + 1


def keeps_both(x: torch.Tensor, index: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    doubled = x * 2
    return doubled.index_add(0, index, x) + doubled


CLONES = ["aten::copy_.self", "aten::index_put.self", "aten::scatter_reduce.self"]


def given() -> list[torch.Tensor]:
    return [torch.ones(4), torch.arange(4), torch.zeros(4)]


def left_functional(program: Callable[..., Any], why: str, **options: Any) -> Capture:
    attempt = attempts.Attempt(is_last=True, why=why)
    with Capture("exact", "graph") as capture, attempts._made(attempt):
        torch.compile(program, options=options)(*given())
        attempt.settle()
    return capture


@pytest.mark.parametrize("pass_of_users", [{}, {"post_grad_custom_post_pass": lambda graph: None}])
def test_what_our_pass_leaves_functional_is_told_as_copied(pass_of_users: dict[str, Any]) -> None:
    with Capture("exact", "graph") as capture:
        torch.compile(largest, options=pass_of_users)(*given())
    assert capture.report.clones == [] and len(capture.report.reinplaced) == 2  # the twin
    report = left_functional(largest, "planted", **pass_of_users).report
    assert sorted(report.clones) == CLONES and report.reinplaced == []
    why = {(o.reason, o.hint) for o in report.outcomes if not o.follows}
    assert why == {(Reason.LOWERING, "nothing is in place in this graph: planted")}


def test_what_would_be_copied_all_the_same_keeps_its_reason() -> None:
    with Capture("exact", "graph") as capture:
        torch.compile(keeps_both)(*given())
    report = left_functional(keeps_both, "planted").report
    assert report == capture.report and [o.reason for o in report.outcomes] == [Reason.STILL_READ]


@pytest.mark.usefixtures("unoptimized")
def test_a_graph_whose_schedule_is_wrong_has_clones_in_its_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "problem", lambda nodes: "never right")
    with Capture("exact", "inductor") as capture:
        torch.compile(largest)(*given())
    (graph,) = capture.graphs
    assert not graph.problem and sorted(graph.report.clones) == CLONES
    assert "nothing is in place in this graph: Inductor's schedule is wrong: never right" in str(
        clones_are(capture.graphs, [])
    )


def test_a_graph_that_our_pass_cannot_analyse_passes_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No empty list of clones may stand for a graph that is left as it was."""

    def fails(*_: Any, **__: Any) -> Any:
        raise GraphError("planted")

    monkeypatch.setattr(stage, "reinplace_graph", fails)
    with Capture("exact", "graph") as capture:
        torch.compile(largest)(*given())
    assert sorted(capture.report.clones) == CLONES
    assert {o.hint for o in capture.report.outcomes} == {""}  # in a test of our pass none names our pass
    monkeypatch.setattr(passes, "analyze_graph", fails)
    with Capture("exact", "graph") as capture:
        torch.compile(largest)(*given())
    assert str(clones_are(capture.graphs, [])) == "graph [fw 0/0] could not be judged: planted"
