"""Nodes move to their first users, and across nothing that they could tell apart."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import custom_op

from pytest_reinplace.passes import Report, inductor_options, post_grad
from pytest_reinplace.passes._torch import collective
from pytest_reinplace.passes.inductor import protect
from pytest_reinplace.passes.reinplacing.run import reinplace
from pytest_reinplace.passes.verify import copied

from ..trace import arange, functional, ops
from .stages import as_traced, assert_same, by_rule

aten = torch.ops.aten
Tensor = torch.Tensor


@custom_op("reinplace_test::shown", mutates_args=())
def shown(x: Tensor) -> Tensor:
    """An operator of which no schema says that it has no effect."""
    return x + 1


@shown.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def names(gm: GraphModule) -> list[str]:
    return [n.name for n in gm.graph.nodes if n.op == "call_function"]


def early(x: Tensor, y: Tensor) -> Tensor:
    one = x.sin()
    two = y.cos()
    three = y.exp() + two
    return three * one


def test_a_node_moves_to_its_first_user() -> None:
    applied, gm = by_rule("locality", early, arange(2, 3), arange(2, 3))
    assert names(gm) == ["exp", "cos", "add", "sin", "mul"]
    assert applied.rewritten == ("sin", "cos")
    again = post_grad.find("locality").apply(gm)
    assert not again.rewritten and not again.refused


def test_what_it_is_computed_of_moves_with_it() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        one = (x.sin() + 1).cos()
        return y.exp().sum() * one

    applied, gm = by_rule("locality", program, arange(2, 3), arange(2, 3))
    assert names(gm) == ["exp", "sum_1", "sin", "add", "cos", "mul"] and len(applied.rewritten) == 3


def test_what_an_epilogue_stores_stays_and_what_it_is_computed_of_comes_to_it() -> None:
    """At the end, where epilogues are, it would be held as long, and what it is made of for longer."""

    def program(x: Tensor, y: Tensor) -> Tensor:
        one = y.sin()
        total = y.exp().sum()
        x.copy_(one.cos())
        return total * 2 - y.sum()

    applied, gm = by_rule("locality", program, arange(2, 3), arange(2, 3))
    ordered = names(gm)
    assert ordered.index("sin") + 1 == ordered.index("cos") < ordered.index("copy_") - 1
    assert "cos" not in applied.rewritten


def test_the_order_is_inductors_where_nothing_is_in_between() -> None:
    from torch._inductor.fx_passes.post_grad import reorder_for_locality

    def program(x: Tensor, y: Tensor) -> Tensor:
        parts = torch.split(x.exp(), [1, 2], 1)
        one, two, three = x.sin(), y.cos(), torch.zeros(2, 3)
        total = (two + three).sum() * parts[1].sum()
        return total + one.sum() * parts[0].sum() + three.sum() + torch.cat([one, two]).sum()

    gm, inputs = functional(program, arange(2, 3), arange(2, 3))
    ours, theirs = copied(gm), copied(gm)
    applied = post_grad.find("locality").apply(ours)
    reorder_for_locality(theirs.graph)
    assert applied.rewritten and names(ours) == names(theirs)
    assert_same(gm, ours, inputs)


def reads_before(x: Tensor, y: Tensor) -> Tensor:
    old = x.sin()
    ops.scale(x, y)
    return old + y


def sizes(report: Report) -> list[int | None]:
    return [o.nbytes for o in report.outcomes if not o.reinplaced]


def rows_before(x: Tensor, y: Tensor) -> Tensor:
    buffer = y.exp()
    old = buffer.sin()
    buffer[0] = x[0]
    return buffer.sum() + old


def views_before(x: Tensor, y: Tensor) -> Tensor:
    old = x[0].sin()
    ops.scale(x[1:], y)
    return old + y[0]


@pytest.mark.parametrize("program", [reads_before, rows_before])
def test_a_reader_that_moves_behind_what_may_be_written_in_place_is_brought_back(
    program: Callable[..., Any],
) -> None:
    gm, inputs = functional(program, arange(2, 3), arange(2, 3))
    after = copied(gm)
    applied = post_grad.find("locality").apply(after)
    assert "sin" in applied.rewritten
    assert reinplace(after).clones == reinplace(copied(gm)).clones == []
    assert_same(gm, after, inputs)


def stores_both(x: Tensor, y: Tensor) -> Tensor:
    put = x.index_put((torch.tensor([0]),), y[0])
    ops.scale(x, y)
    return put + y


@pytest.mark.parametrize("program", [views_before, stores_both])
def test_views_and_what_is_written_itself_stay_in_front_of_what_may_be(program: Callable[..., Any]) -> None:
    gm, inputs = functional(program, arange(2, 3), arange(2, 3))
    after = copied(gm)
    applied = post_grad.find("locality").apply(after)
    assert "what it reads may be written in between" in {r.reason for r in applied.refused}
    assert sizes(reinplace(after)) == sizes(reinplace(copied(gm)))
    assert_same(gm, after, inputs)


def reads_another(x: Tensor, y: Tensor) -> Tensor:
    other = y.sin()
    ops.scale(x, y)
    return other + y


def test_it_moves_behind_what_may_write_something_else() -> None:
    applied, _ = by_rule("locality", reads_another, arange(2, 3), arange(2, 3))
    assert "sin" in applied.rewritten


def written(x: Tensor, y: Tensor) -> Tensor:
    old = x.sin()
    x.add_(1)
    return old + y


def other_written(x: Tensor, y: Tensor) -> Tensor:
    old = x.sin()
    y.add_(1)
    return old + x


def number_drawn(x: Tensor, y: Tensor) -> Tensor:
    old = x.sin()
    return aten.bernoulli.p(y, 0.0) + old


def number_kept(x: Tensor, y: Tensor) -> Tensor:
    drawn = aten.bernoulli.p(y, 0.0)
    return x.sin() + drawn


def asserted(x: Tensor, y: Tensor) -> Tensor:
    old = x.sin()
    aten._assert_async.default(y.sum() > -9)
    return y.cos() + old


@pytest.mark.parametrize("program", [written, other_written, number_drawn, asserted])
def test_nothing_moves_across_a_write_a_random_number_or_an_effect(program: Callable[..., Any]) -> None:
    applied = as_traced("locality", program, arange(2, 3), arange(2, 3))
    assert ("sin", "a write or an effect comes in between") in {
        (r.node.name, r.reason) for r in applied.refused
    }
    assert "sin" not in applied.rewritten


def test_what_draws_numbers_and_what_is_not_torchs_own_stay() -> None:
    applied = as_traced("locality", number_kept, arange(2, 3), arange(2, 3))
    assert "bernoulli" not in applied.rewritten

    def program(x: Tensor, y: Tensor) -> Tensor:
        one = shown(x)
        return y.exp().sum() * one

    applied, gm = by_rule("locality", program, arange(2, 3), arange(2, 3))
    assert not applied.rewritten and names(gm)[0] == "shown"


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_nothing_moves_across_a_collective_nor_that_itself() -> None:
    graph = Graph()

    def call(target: Any, *args: Any) -> Node:
        node = graph.call_function(target, args)
        node.meta["val"] = torch.empty(2, device="meta")
        return node

    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(2, device="meta")
    old = call(aten.sin.default, x)
    started = call(collective("all_reduce"), x, "sum", "0")
    other = call(aten.cos.default, x)
    waited = call(collective("wait_tensor"), started)
    graph.output(call(aten.add.Tensor, call(aten.add.Tensor, call(aten.exp.default, x), waited), old))
    before = list(graph.nodes)
    applied = post_grad.find("locality").on_graph(graph)
    assert {r.node for r in applied.refused} >= {old} and not applied.rewritten
    assert list(graph.nodes) == before and not other.users


def test_several_results_stay_together() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        one, two = torch.split(x.exp(), [1, 2], 1)
        return y.exp().sum() * one.sum() * two.sum()

    _, gm = by_rule("locality", program, arange(2, 3), arange(2, 3))
    order = names(gm)
    assert order.index("getitem") == order.index("split_with_sizes") + 1


def test_symbols_move_too() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        one = torch.zeros(x.shape[0] * 2)
        return (y.exp().sum() + one).cos()

    applied, _ = by_rule("locality", program, arange(4, 3), arange(5, 3), dynamic=True)
    assert "full" in applied.rewritten


def chain(length: int) -> GraphModule:
    """Make a graph in which one value has many users, and all constants stand first."""

    def program(x: Tensor) -> Tensor:
        constants = [torch.full((2,), float(i)) for i in range(length)]
        total = x
        for constant in constants:
            total = (total + x) * constant
        return total

    return make_fx(program, tracing_mode="fake")(torch.ones(2))


def seconds(gm: GraphModule) -> float:
    start = time.process_time()
    assert post_grad.find("locality").on_graph(gm.graph).rewritten
    return time.process_time() - start


def test_the_time_grows_with_the_graph() -> None:
    small, large = chain(250), chain(2000)
    quick = min(seconds(copied(small)) for _ in range(3))
    assert min(seconds(copied(large)) for _ in range(3)) < 8 * 3 * quick


def test_the_options_put_it_in_the_place_of_inductors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert inductor_options(stage="post_grad")["reorder_for_locality"] is False
    assert "reorder_for_locality" not in inductor_options()
    for order, inference, moves in (("free", True, True), ("free", False, False), ("keep", True, False)):
        monkeypatch.setattr(protect, "is_inference", lambda inference=inference: inference)
        gm, _ = functional(early, arange(2, 3), arange(2, 3))
        inductor_options(stage="post_grad", order=order)["post_grad_custom_pre_pass"](gm.graph)  # type: ignore[arg-type]
        assert (names(gm)[0] != "sin") is moves


@pytest.mark.parametrize("training", [False, True])
def test_it_is_for_inference(training: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    find = protect.find
    monkeypatch.setattr(protect, "find", lambda name: (seen.append(name), find(name))[1])
    torch.compiler.reset()
    compiled = torch.compile(early, fullgraph=True, options=inductor_options(stage="post_grad"))
    x, y = arange(2, 3).requires_grad_(training), arange(2, 3)
    with torch.compiler.config.patch(force_disable_caches=True):
        assert torch.allclose(compiled(x, y), early(x, y))
    assert ("locality" in seen) is not training and "cumsum" in seen
