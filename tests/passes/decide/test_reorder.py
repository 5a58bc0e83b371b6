"""Readers that move to save a copy: where they do, and for each rule the twin where they must not."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Node

from pytest_reinplace.passes import Outcome, Reason, ReinplaceError, Report, RewriteError, analyze, reinplace
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.fuzz.graph import RandomGraph
from pytest_reinplace.passes.fuzz.late_order import delayed
from pytest_reinplace.passes.graph.movable import is_barrier, is_movable
from pytest_reinplace.passes.reinplacing.decide.choose import best, decide
from pytest_reinplace.passes.reinplacing.facts.candidate import Refusal
from pytest_reinplace.passes.reinplacing.facts.price import held_bytes, peak_bytes
from pytest_reinplace.passes.reinplacing.model.build import build
from pytest_reinplace.passes.strategies import random_graph
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange, ops

aten = torch.ops.aten
SCALE = "reinplace_test::scale.x"


class Written:
    """A graph under construction: ``old`` is computed, and ``write`` makes a new version of it."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.x = self.builder.placeholder(arange(4, 4))
        self.y = self.builder.placeholder(arange(4, 4) + 7)
        self.call = self.builder.call
        self.old = self.call(aten.mul.Tensor, self.x, 2)

    def write(self, old: Node | None = None) -> Node:
        return self.builder.v1(ops.scale.default, x=old or self.old, by=self.y)[-1]

    def unknown(self, x: Node) -> Node:
        """Add a call of something that is no operator."""
        node = self.builder.graph.call_function(_unknown, (x,))
        node.meta["val"] = torch.empty_like(x.meta["val"])
        return node

    def decided(
        self, *outputs: Node, moves: bool, run: bool = True, **options: Any
    ) -> tuple[Report, GraphModule]:
        """Rewrite the graph, check it, and see that a copy was saved by a move, or that nothing moved."""
        gm = self.builder.finished(list(outputs))
        graph = RandomGraph(gm, self.builder.inputs, [])
        kept = [n.name for n in gm.graph.nodes]
        before, rewritten = reinplace(graph.copy(), order="keep"), graph.copy()
        assert analyze(gm) == analyze(gm) and [n.name for n in gm.graph.nodes] == kept
        report = reinplace(rewritten, **options)
        if run:
            assert_equivalent(gm, rewritten, self.builder.inputs)
        assert any(o.moved for o in report.outcomes) is moves
        assert (report.clone_bytes < before.clone_bytes) is moves
        if not moves:
            names = [n.name for n in rewritten.graph.nodes if n.name in kept]
            assert names == [name for name in kept if name in names]
        return report, rewritten


def _unknown(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def outcome(report: Report, label: str = SCALE) -> Outcome:
    return next(o for o in report.outcomes if o.label == label)


def test_a_reader_moves_in_front_of_the_write() -> None:
    graph = Written()
    new = graph.write()
    total = graph.call(aten.sum.default, graph.old)
    report, rewritten = graph.decided(new, total, moves=True)
    assert report.clones == []
    assert [b.node for b in outcome(report).moved] == [total.name]
    assert "once sum_default (aten::sum) ran before it" in str(report)
    assert Outcome.from_dict(outcome(report).to_dict()) == outcome(report)
    names = [n.name for n in rewritten.graph.nodes]
    assert names.index(total.name) < next(i for i, n in enumerate(names) if "scale" in n)


def test_an_outcome_that_was_written_before_there_were_moves_is_read() -> None:
    data = Outcome("a.b", "a", "b", "n", True, 4).to_dict()
    del data["moved"]
    assert Outcome.from_dict(data).moved == ()


def test_the_order_is_kept_on_request() -> None:
    graph = Written()
    new = graph.write()
    total = graph.call(aten.sum.default, graph.old)
    report, _ = graph.decided(new, total, moves=False, order="keep")
    assert outcome(report).reason is Reason.STILL_READ
    with pytest.raises(ReinplaceError, match="'free' or 'keep'"):
        reinplace(graph.builder.finished([total]), order="best")  # type: ignore[arg-type]


def test_a_clone_that_keeps_the_old_value_for_a_reader_goes_too() -> None:
    graph = Written()
    new = graph.write(graph.call(aten.clone.default, graph.old))
    total = graph.call(aten.sum.default, graph.old)
    report, _ = graph.decided(new, total, moves=True)
    assert report.clones == []


@pytest.mark.parametrize("stays", [False, True])
def test_a_clone_behind_the_write_moves_and_then_its_reader(stays: bool) -> None:
    graph = Written()
    new, kept = graph.write(graph.x), graph.call(aten.clone.default, graph.x)
    total = graph.unknown(kept) if stays else graph.call(aten.sum.default, kept)
    graph.call(aten.copy_.default, graph.x, new)
    gm = graph.builder.finished([total])
    report = reinplace(rewritten := RandomGraph(gm, graph.builder.inputs, []).copy())
    assert_equivalent(gm, rewritten, graph.builder.inputs)
    assert report.clones == (["aten::clone.self"] if stays else [])
    assert [b.node for b in outcome(report).moved] == [kept.name if stays else total.name]


@pytest.mark.parametrize("small", [True, False])
def test_a_small_clone_for_a_reader_that_stays_is_made_before_the_write(small: bool) -> None:
    """Inductor puts clones where they are used first."""
    graph = Written()
    new = graph.write(graph.old if small else graph.call(aten.slice.Tensor, graph.old, 0, 0, 1))
    part = graph.call(aten.slice.Tensor, graph.old, 0, 0, 1) if small else graph.old
    kept = graph.call(aten.clone.default, part)
    into = graph.call(aten.mul.Tensor, graph.y, 3)
    seen = graph.builder.v1(ops.scale.default, x=into, by=kept)[-1]
    report, _ = graph.decided(new, seen, moves=small)
    assert report.clone_bytes == 16 and ("aten::clone.self" in report.clones) is small


def test_what_the_reader_needs_moves_with_it() -> None:
    graph = Written()
    new = graph.write()
    view = graph.call(aten.slice.Tensor, graph.old, 0, 1, 3)
    halved = graph.call(aten.mul.Tensor, graph.call(aten.sum.dim_IntList, view, [0]), 0.5)
    report, rewritten = graph.decided(new, halved, moves=True)
    assert report.clones == []
    # Only the sum looks at the old bytes: what is made of it stays.
    names = [n.name for n in rewritten.graph.nodes]
    assert names.index(halved.name) > next(i for i, n in enumerate(names) if "scale" in n)


def test_a_reader_of_the_new_value_cannot_come_first() -> None:
    graph = Written()
    new = graph.write()
    both = graph.call(aten.add.Tensor, graph.old, graph.call(aten.sum.default, new))
    graph.decided(both, moves=False)


def test_a_result_larger_than_the_copy_does_not_move() -> None:
    graph = Written()
    new = graph.write()
    wide = graph.call(aten.cat.default, [graph.old, graph.old])
    graph.decided(new, wide, moves=False)


def test_a_result_as_large_as_the_copy_moves() -> None:
    graph = Written()
    new = graph.write()
    graph.decided(new, graph.call(aten.neg.default, graph.old), moves=True)


def test_results_larger_than_the_copy_together_do_not_move() -> None:
    graph = Written()
    new = graph.write()
    minus = graph.call(aten.neg.default, graph.old)
    graph.decided(new, minus, graph.call(aten.sum.default, graph.old), moves=False)


def test_a_long_chain_does_not_move() -> None:
    graph = Written()
    new = graph.write()
    index = graph.call(aten.arange.default, 1)
    for _ in range(60):
        index = graph.call(aten.neg.default, index)
    graph.decided(new, graph.call(aten.mul.Tensor, graph.old, index), moves=False)


def test_one_reader_that_stays_keeps_the_others_in_place() -> None:
    graph = Written()
    new = graph.write()
    total = graph.call(aten.sum.default, graph.old)
    graph.decided(new, total, graph.call(aten.cat.default, [graph.old, graph.old]), moves=False)


@pytest.mark.parametrize(("rows", "moves"), [(1, True), (4, False)])
def test_a_reader_that_stays_is_given_a_copy_of_a_small_view(rows: int, moves: bool) -> None:
    graph = Written()
    other = graph.call(aten.add.Tensor, graph.call(aten.slice.Tensor, graph.y, 0, 0, rows), 1)
    new = graph.write()
    part = graph.call(aten.slice.Tensor, graph.old, 0, 0, rows)
    stays = graph.builder.v1(ops.scale.default, x=other, by=part)[-1]
    report, _ = graph.decided(new, stays, moves=moves)
    if moves:
        assert [b.node for o in report.outcomes for b in o.moved] == [part.name]


def test_a_view_that_the_reader_writes_itself_stays() -> None:
    graph = Written()
    new = graph.write()
    part = graph.call(aten.slice.Tensor, graph.old, 0, 0, 3)
    stays = graph.builder.v1(ops.scale.default, x=part, by=graph.call(aten.slice.Tensor, graph.y, 0, 0, 3))[
        -1
    ]
    graph.decided(new, stays, moves=False)


def test_views_that_are_larger_together_stay() -> None:
    graph = Written()
    new = graph.write()
    other = graph.call(aten.add.Tensor, graph.call(aten.slice.Tensor, graph.y, 0, 0, 2), 1)
    parts = [graph.call(aten.slice.Tensor, graph.old, 0, i, i + 2) for i in range(3)]
    stay = [graph.builder.v1(ops.scale.default, x=other, by=part)[-1] for part in parts]
    graph.decided(new, *stay, moves=False)


def test_what_is_returned_stays() -> None:
    graph = Written()
    new = graph.write()
    graph.decided(new, graph.old, graph.call(aten.sum.default, graph.old), moves=False)


def test_only_readers_that_unlock_a_copy_move() -> None:
    graph = Written()
    other = graph.call(aten.add.Tensor, graph.x, 1)
    new = graph.write()
    aside = graph.call(aten.sum.default, other)
    total = graph.call(aten.sum.default, graph.old)
    _, rewritten = graph.decided(new, total, aside, moves=True)
    names = [n.name for n in rewritten.graph.nodes]
    scale = next(i for i, n in enumerate(names) if "scale" in n)
    assert names.index(total.name) < scale < names.index(aside.name)


def test_readers_whose_copy_is_needed_anyway_stay() -> None:
    """The caller keeps the input, so the copy is made whatever runs first."""
    graph = Written()
    new = graph.write(graph.x)
    graph.decided(new, graph.call(aten.sum.default, graph.x), moves=False)


def test_readers_of_an_input_that_is_written_back_move() -> None:
    graph = Written()
    new = graph.write(graph.x)
    total = graph.call(aten.sum.default, graph.x)
    graph.call(aten.copy_.default, graph.x, new)
    report, _ = graph.decided(total, moves=True)
    assert report.clones == []


def test_a_reader_of_what_was_really_written_stays_behind_it() -> None:
    graph = Written()
    new = graph.write()
    graph.call(aten.copy_.default, graph.x, graph.y)
    graph.decided(
        new, graph.call(aten.sum.default, graph.call(aten.add.Tensor, graph.old, graph.x)), moves=False
    )


def test_a_reader_passes_a_real_write_that_it_does_not_see() -> None:
    graph = Written()
    new = graph.write()
    graph.call(aten.copy_.default, graph.x, graph.y)
    graph.decided(new, graph.call(aten.sum.default, graph.old), moves=True)


def test_a_result_that_a_later_write_would_clobber_is_read_first() -> None:
    graph = Written()
    new = graph.write(graph.x)
    graph.call(aten.copy_.default, graph.x, graph.y)
    report, _ = graph.decided(graph.call(aten.sum.default, new), moves=True)
    assert outcome(report).reinplaced


BETWEEN = pytest.mark.parametrize("between", ["random", "collective", "unknown"])


@BETWEEN
def test_nothing_crosses(between: str) -> None:
    graph = Written()
    new = graph.write()
    node = _between(graph, between)
    total = graph.call(aten.sum.default, graph.old)
    graph.decided(new, total, node, moves=False, run=between != "collective")


@BETWEEN
def test_what_comes_later_is_not_crossed(between: str) -> None:
    graph = Written()
    new = graph.write()
    total = graph.call(aten.sum.default, graph.old)
    node = _between(graph, between)
    graph.decided(new, total, node, moves=True, run=between != "collective")


def _between(graph: Written, kind: str) -> Node:
    if kind == "random":
        return graph.call(aten.bernoulli.p, graph.y, 0.0)
    if kind == "collective":  # there is no process group to run it in
        started = graph.call(torch.ops._c10d_functional.all_reduce.default, graph.y, "sum", "0")
        return graph.call(torch.ops._c10d_functional.wait_tensor.default, started)
    return graph.unknown(graph.y)


def test_a_reader_that_draws_random_numbers_stays() -> None:
    graph = Written()
    graph.old = graph.call(aten.mul.Tensor, graph.x, 0.0)
    new = graph.write()
    graph.decided(new, graph.call(aten.bernoulli.default, graph.old), moves=False)


def test_a_reader_that_is_not_torch_s_own_stays() -> None:
    graph = Written()
    new = graph.write()
    graph.decided(new, graph.unknown(graph.old), moves=False)


def test_a_reader_that_writes_something_else_stays() -> None:
    graph = Written()
    new = graph.write()
    row = graph.call(aten.select.int, graph.old, 0, 0)
    last = graph.builder.v1(ops.update.default, cache=graph.x, value=row)
    report, _ = graph.decided(new, *last, moves=True)
    assert [b.node for o in report.outcomes for b in o.moved] == [row.name]


def test_what_has_an_effect_is_a_barrier_and_does_not_move() -> None:
    builder = GraphBuilder()
    x = builder.placeholder(arange(4))
    effects = [
        builder.call(aten._assert_async.msg, builder.call(aten.sum.default, x), "message"),
        builder.call(aten.sym_constrain_range.default, 3),
        builder.call(aten.rand.default, [2]),
        builder.call(torch.ops._c10d_functional.all_reduce.default, x, "sum", "0"),
        builder.graph.call_function(print, (x,)),
        builder.graph.call_function(torch.ops.higher_order.with_effects, (x,)),
        builder.graph.call_module("inner", (x,)),
    ]
    assert [n for n in effects if is_movable(n) or not is_barrier(n)] == []


def test_what_only_computes_is_no_barrier() -> None:
    builder = GraphBuilder()
    x = builder.placeholder(arange(4))
    pure = [
        builder.call(aten.sum.default, x),
        builder.call(aten.slice.Tensor, x, 0, 1, 2),
        builder.call(operator.getitem, builder.call(aten.split.Tensor, x, 2), 0),
        builder.call(aten.sym_size.int, x, 0),
        builder.buffer(arange(2)),
    ]
    assert [n for n in pure if is_barrier(n) or not is_movable(n)] == []
    write = builder.call(aten.copy_.default, x, pure[0])
    assert not is_barrier(write) and not is_movable(write)


def early_reader(wide: bool) -> tuple[Written, list[Node]]:
    """A copy that is dead before something wide is made, and a reader of the old value after that."""
    graph = Written()
    total = graph.call(aten.sum.default, graph.write(graph.x))
    if wide:
        total = graph.call(
            aten.add.Tensor, total, graph.call(aten.sum.default, graph.call(aten.cat.default, [graph.y] * 3))
        )
    minus = graph.call(aten.neg.default, graph.x)
    graph.call(aten.copy_.default, graph.x, graph.y)
    return graph, [total, minus]


def test_a_reader_whose_result_would_raise_the_peak_stays() -> None:
    graph, outputs = early_reader(wide=True)
    graph.decided(*outputs, moves=False)


def test_a_reader_whose_result_is_not_alive_at_the_peak_moves() -> None:
    graph, outputs = early_reader(wide=False)
    graph.decided(*outputs, moves=True)


def test_a_copy_that_waits_for_its_reader_is_held_until_then() -> None:
    """A row of a ring is read when it is overwritten: early, that is held for longer, the ring not."""
    builder = GraphBuilder()
    ring, row, place = (builder.placeholder(v) for v in (arange(64, 4), arange(1, 4), torch.tensor([3])))
    new = builder.call(aten.index_put.default, ring, [place], row)
    wide = builder.call(aten.cat.default, [row] * 4)
    total = builder.call(aten.sum.default, wide)
    left = builder.call(aten.index.Tensor, ring, [place])
    builder.call(aten.copy_.default, ring, new)
    gm = builder.finished([total, left])
    kept, moved = (analyze(gm, order=order) for order in ("keep", "free"))
    assert [o.added for o in kept.outcomes if not o.reinplaced] == [True]
    assert moved.clones == [] and any(o.moved for o in moved.outcomes)


def test_bytes_are_held_from_the_making_to_the_last_use() -> None:
    builder = GraphBuilder()
    x = builder.placeholder(arange(4))
    a = builder.call(aten.neg.default, x)
    b = builder.call(aten.slice.Tensor, a, 0, 0, 2)
    c = builder.call(aten.sum.default, b)
    d = builder.call(aten.clone.default, c)
    model = build(builder.finished([d]).graph)
    held = held_bytes(best(model))
    assert held == [0, 16, 16, 20, 4, 4]  # x; a; its view; the sum, made while a is there; d in place of c
    copied = decide(model, {0: Refusal(Reason.CHEAPER)})
    assert held_bytes(copied) == [0, 16, 16, 20, 8, 4] and peak_bytes(copied) == 20


def test_a_fault_while_rewriting_restores_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Written()
    new = graph.write()
    total = graph.call(aten.sum.default, graph.call(aten.slice.Tensor, graph.old, 0, 1, 3))
    gm = graph.builder.finished([new, total])
    before, names = str(gm.graph), [n.name for n in gm.graph.nodes]

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("half way")

    monkeypatch.setattr("pytest_reinplace.passes.graph.emit.Emitter.mutable_op", fails)
    with pytest.raises(RewriteError, match="half way"):
        reinplace(gm)
    assert (str(gm.graph), [n.name for n in gm.graph.nodes]) == (before, names)
    gm.graph.lint()


def test_delayed_graphs_compute_the_same_and_are_rewritten_right() -> None:
    moved = 0
    for seed in range(400):
        graph = random_graph(seed)
        late = delayed(graph)
        assert_equivalent(graph.gm, late.gm, graph.inputs)
        rewritten, kept = late.copy(), reinplace(late.copy(), order="keep")
        report = reinplace(rewritten)
        assert_equivalent(late.gm, rewritten, graph.inputs)
        assert report.clone_bytes <= kept.clone_bytes
        moved += any(o.moved for o in report.outcomes)
    assert moved > 1
