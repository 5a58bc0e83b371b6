"""Capture: what it sees, what it changes while it is on, and what is left when it is off."""

from __future__ import annotations

import threading

import pytest
import torch

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.capture.pass_under_test import PassError
from pytest_reinplace.passes import inductor_options

from .programs import call_op, inputs, keep, pure, read_row, update

MISSED = ["aten::select_scatter.self"]


def ids(capture: Capture) -> list[str]:
    return [graph.id for graph in capture.graphs]


def test_forward_and_the_backward_that_is_compiled_later() -> None:
    with Capture(backend="graph") as capture:
        x, row = inputs(read_row)
        loss = torch.compile(read_row)(x, row)
        assert ids(capture) == ["[fw 0/0]"]
        loss.backward()
    assert ids(capture) == ["[fw 0/0]", "[bw 0/0]"]
    assert capture.graphs[1].report.clones == capture.report.clones == MISSED
    assert x.grad is not None
    assert x.grad[1].tolist() == [2, 2, 2, 2]


def test_a_backward_of_another_thread_has_the_same_pass() -> None:
    with Capture("exact", "graph") as capture:
        loss = torch.compile(read_row)(*inputs(read_row))
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    assert ids(capture) == ["[fw 0/0]", "[bw 0/0]"]
    assert capture.report.reinplaced == MISSED


def test_recompilations_have_numbers_of_their_own() -> None:
    with Capture(backend="graph") as capture:
        fast = torch.compile(call_op, dynamic=False)
        for size in (8, 16):
            fast(torch.zeros(size), torch.ones(4))
        torch.compile(keep)(*inputs(keep))
    assert ids(capture) == ["[fw 0/0]", "[fw 0/1]", "[fw 1/0]"]


def test_a_graph_break_makes_two_graphs() -> None:
    def broken(x, index, value):
        update(x, index, value)
        torch._dynamo.graph_break()
        return keep(x)

    with Capture(backend="graph") as capture:
        torch.compile(broken)(*inputs(update))
    assert ids(capture) == ["[fw 0/0]", "[fw 1/0]"]
    assert [g.report.clones for g in capture.graphs] == [[], ["aten::index_put.self"]]


def test_a_subgraph_is_a_graph_that_names_its_place() -> None:
    def branches(x, flag):
        return torch.cond(flag, keep, lambda t: (t + 1, t.sum()), (x,))

    with Capture(backend="graph") as capture:
        torch.compile(branches)(torch.ones(8), torch.tensor(True))
    assert "[fw 0/0]" in ids(capture)
    (inner,) = [g for g in capture.graphs if g.report.clones]
    assert inner.id.startswith("[fw 0/0 true_graph")


def test_dynamic_sizes_count_their_hints() -> None:
    with Capture(backend="graph") as capture:
        torch.compile(keep, dynamic=True)(torch.ones(8))
        assert capture.report.clone_bytes == 32


@pytest.mark.parametrize("name", ["inductor", "exact"])
def test_values_are_right_in_the_graph_backend(name: str) -> None:
    for fn in (update, keep, call_op, pure):
        expected_args, args = inputs(fn), inputs(fn)
        expected = fn(*expected_args)
        with Capture(name, "graph"):
            torch.testing.assert_close(torch.compile(fn)(*args), expected)
        torch.testing.assert_close(args, expected_args)


@pytest.mark.parametrize(("name", "missed"), [("inductor", MISSED), ("exact", [])])
def test_the_inductor_backend_decides_the_same(name: str, missed: list[str]) -> None:
    with Capture(name, "inductor") as capture:
        x, row = inputs(read_row)
        torch.compile(read_row)(x, row).backward()
        assert x.grad is not None
        assert x.grad[1].tolist() == [2, 2, 2, 2]
    assert ids(capture) == ["[fw 0/0]", "[bw 0/0]"]
    assert capture.report.clones == missed
    assert {g.backend for g in capture.graphs} == {"inductor"}


def test_options_of_the_user_hold_and_our_pass_is_recognised() -> None:
    with Capture("inductor", "graph") as capture:
        torch.compile(read_row, options=inductor_options())(*inputs(read_row)).backward()
    assert capture.report.reinplaced == MISSED


@pytest.mark.parametrize(
    ("name", "clones"), [("inductor", MISSED), ("exact", []), ("tests.plugin.passes:nothing", MISSED)]
)
def test_a_custom_pass_of_the_user_runs_before_the_pass_under_test(name: str, clones: list[str]) -> None:
    seen = []

    def look(graph: torch.fx.Graph) -> None:
        seen.append([str(n.target) for n in graph.nodes if "scatter" in str(n.target)])

    with Capture(name, "graph") as capture:
        options = {"post_grad_custom_post_pass": look, "joint_custom_pre_pass": look}
        torch.compile(read_row, options=options)(*inputs(read_row)).backward()
    assert [] in seen
    assert ["aten.select_scatter.default"] in seen
    assert capture.report.clones == clones


def test_a_configured_pass_of_the_user_is_kept_too() -> None:
    seen: list[torch.fx.Graph] = []
    with (
        torch._inductor.config.patch(post_grad_custom_post_pass=seen.append),
        Capture("exact", "graph") as capture,
    ):
        torch.compile(update)(*inputs(update))
    assert len(seen) == len(capture.graphs) == 1
    assert capture.report.clones == []


def test_a_pass_of_the_user_that_reinplaces_is_judged_from_before_it() -> None:
    from pytest_reinplace.passes import reinplace

    def by_hand(graph: torch.fx.Graph) -> None:
        reinplace(graph.owning_module)

    with Capture("inductor", "graph") as capture:
        torch.compile(call_op, options={"post_grad_custom_post_pass": by_hand})(*inputs(call_op))
    assert capture.report.reinplaced == ["plugintest::write.out"]
    assert capture.graphs[0].problem == ""


def test_a_pass_that_raises_fails_the_compilation() -> None:
    with Capture("tests.plugin.passes:breaks", "graph") as capture:
        with pytest.raises(Exception, match="in the middle"):
            torch.compile(update)(*inputs(update))
        assert capture.graphs == []


def test_wrappers_that_a_pass_left_alone_clone_everything() -> None:
    out, value = inputs(call_op)
    with Capture("tests.plugin.passes:nothing", "graph") as capture:
        torch.compile(call_op)(out, value)
    assert out.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert capture.report.clones == ["plugintest::write.out", "aten::copy_.self"]


def test_nothing_compiled_inside_survives_nor_anything_compiled_outside() -> None:
    fast = torch.compile(call_op)
    with Capture(backend="graph") as first:
        fast(*inputs(call_op))
        fast(*inputs(call_op))
    with Capture(backend="graph") as second:
        fast(*inputs(call_op))
    assert len(first.graphs) == len(second.graphs) == 1


def test_afterwards_torch_is_as_before() -> None:
    import torch._inductor.compile_fx as compile_fx
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver

    def patched() -> tuple[object, ...]:
        return (
            compile_fx.compile_fx,
            GraphTransformObserver.apply_graph_pass,
            GraphTransformObserver.apply_gm_pass,
            torch._TorchCompileInductorWrapper.__call__,
            torch.export.ExportedProgram.module,
            torch._inductor.config.get_config_copy(),
        )

    before = patched()
    with Capture("exact", "graph"):
        torch.compile(update)(*inputs(update))
        assert compile_fx.compile_fx is not before[0]
    assert patched() == before


def test_captures_nest() -> None:
    with Capture(backend="graph") as outer:
        torch.compile(update)(*inputs(update))
        with Capture(backend="graph") as inner:
            torch.compile(keep)(*inputs(keep))
    assert len(inner.graphs) == 1
    assert len(outer.graphs) == 2


def test_a_graph_that_cannot_be_judged_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_reinplace import passes

    def refuse(graph: object, options: object) -> None:
        raise passes.GraphError("not today")

    monkeypatch.setattr(passes, "analyze_graph", refuse)
    with Capture(backend="graph") as capture:
        torch.compile(update)(*inputs(update))
    assert [g.problem for g in capture.graphs] == ["not today"]


@pytest.mark.parametrize("what", ["Before.of", "judge"])
def test_a_defect_of_ours_breaks_no_compilation(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise IndexError("out of range")

    monkeypatch.setattr(f"pytest_reinplace.capture.post_grad.{what}", fail)
    with Capture(backend="graph") as capture:
        assert torch.compile(update)(*inputs(update)).tolist() == [2, 2]
    (graph,) = capture.graphs
    assert "a defect of pytest-reinplace: IndexError: out of range" in graph.problem


def test_texts_show_the_graph_before_and_after() -> None:
    with Capture("exact", "graph") as capture:
        torch.compile(update)(*inputs(update))
    (graph,) = capture.graphs
    assert "torch.ops.aten.index_put.default" in graph.before
    assert "torch.ops.aten.index_put_.default" in graph.after


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="expected backend to be one of inductor, graph, got 'eager'"):
        Capture(backend="eager")
    with pytest.raises(
        PassError, match="expected one of inductor, exact, post_grad or package.module:attribute"
    ):
        Capture("nosuch")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("backend", ["graph", "inductor"])
@pytest.mark.parametrize(("name", "missed"), [("inductor", MISSED), ("exact", [])])
def test_on_cuda_the_backward_compiles_in_a_thread_of_autograd(
    name: str, missed: list[str], backend: str
) -> None:
    with Capture(name, backend) as capture:
        x = torch.ones(4, 4, device="cuda", requires_grad=True)
        torch.compile(read_row)(x, 1).backward()
        assert x.grad is not None
        assert x.grad[1].tolist() == [2, 2, 2, 2]
    assert ids(capture) == ["[fw 0/0]", "[bw 0/0]"]
    assert capture.report.clones == missed
    assert {g.pass_name for g in capture.graphs} == {name}
