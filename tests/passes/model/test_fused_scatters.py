"""View scatters into values that are in memory for nobody else: computed with what makes them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Node

from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reason import Reason
from pytest_reinplace.passes.reinplacing.decide.choose import decide
from pytest_reinplace.passes.reinplacing.facts.candidate import Refusal
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.facts.target import NODE_BY_NODE
from pytest_reinplace.passes.reinplacing.model.build import build
from pytest_reinplace.passes.reinplacing.run import analyze_graph, reinplace_graph

from ..trace import arange

aten = torch.ops.aten


def options(lowered: bool) -> Options:
    return Options(target=INDUCTOR if lowered else NODE_BY_NODE)


def fused(b: GraphBuilder, written: Node, options: Options) -> bool:
    b.finished([b.call(aten.mm.default, written, written)])
    (outcome,) = [o for o in analyze_graph(b.graph, options).outcomes if o.op == "aten::slice_scatter"]
    assert outcome.reinplaced
    return outcome.fused


def scattered(b: GraphBuilder, base: Node) -> Node:
    """``base[0:2] = w``, as functionalization writes it: the old rows are taken for their shape alone."""
    w = b.placeholder(arange(2, 4))
    rows = b.call(aten.copy.default, b.call(aten.slice.Tensor, base, 0, 0, 2), w)
    return b.call(aten.slice_scatter.default, base, rows, 0, 0, 2)


@pytest.mark.parametrize("lowered", [True, False])
def test_into_an_empty_buffer(lowered: bool) -> None:
    b = GraphBuilder()
    empty = b.call(aten.empty.memory_format, [4, 4], dtype=torch.int64, device=torch.device("cpu"))
    assert fused(b, scattered(b, empty), options(lowered)) is lowered


@pytest.mark.parametrize("lowered", [True, False])
def test_into_rows_that_are_picked(lowered: bool) -> None:
    b = GraphBuilder()
    x, i = b.placeholder(arange(4, 4)), b.placeholder(torch.tensor([1, 2, 3, 0]))
    assert (
        fused(
            b,
            scattered(b, b.call(aten.index.Tensor, x, [i])),
            options(lowered),
        )
        is lowered
    )


def test_into_rows_that_others_read_is_in_place() -> None:
    b = GraphBuilder()
    x, i = b.placeholder(arange(4, 4)), b.placeholder(torch.tensor([1, 2, 3, 0]))
    picked = b.call(aten.index.Tensor, x, [i])
    old = b.call(aten.mm.default, picked, x)
    written = scattered(b, picked)
    assert not fused(b, b.call(aten.mm.default, written, old), Options(target=INDUCTOR))


def test_into_what_a_kernel_makes_is_in_place() -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(4, 4))
    assert not fused(b, scattered(b, b.call(aten.mm.default, x, x)), Options(target=INDUCTOR))


@pytest.mark.parametrize(
    ("between", "is_computed"),
    [("put", False), ("store", False), ("clone", True), ("scatter", True), ("before", True), ("later", True)],
)
def test_into_what_is_in_memory_as_its_source_is_overwritten(between: str, is_computed: bool) -> None:
    b = GraphBuilder()
    x, i = b.placeholder(arange(4, 4)), b.placeholder(torch.tensor([1, 2, 3, 0]))
    first = overwritten(b, x, i, "put" if between == "before" else "")
    picked = b.call(aten.index.Tensor, x, [i])
    new = overwritten(b, x, i, between)
    written = scattered(b, picked)
    last = overwritten(b, x, i, "put" if between == "later" else "")
    others = b.call(aten.mm.default, b.call(aten.mm.default, first, new), last)
    assert fused(b, b.call(aten.mm.default, written, others), Options(target=INDUCTOR)) is is_computed


def overwritten(b: GraphBuilder, x: Node, i: Node, how: str) -> Node:
    """Overwrite what rows were picked of, or do what is no write of it, or may be none."""
    if how == "put":
        return b.call(aten.index_put.default, x, [i], x)
    if how == "store":
        b.graph.call_function(aten.copy_.default, (x, b.placeholder(arange(4, 4)))).meta["val"] = x.meta[
            "val"
        ]
    if how == "scatter":
        return b.call(aten.select_scatter.default, x, b.placeholder(arange(4)), 0, 0)
    return b.call(aten.clone.default, x) if how == "clone" else x


def test_into_a_scatter_that_is_in_memory_as_its_source_is_overwritten() -> None:
    """What it stores is a copy, which is computed where it is used."""
    b = GraphBuilder()
    x, i = b.placeholder(arange(4, 4)), b.placeholder(torch.tensor([1, 2]))
    zeros = b.call(aten.full.default, [4, 4], 0, dtype=torch.int64, device=torch.device("cpu"))
    picked = b.call(aten.index.Tensor, x, [i])
    rows = b.call(aten.copy.default, b.call(aten.slice.Tensor, zeros, 0, 0, 2), picked)
    first = b.call(aten.slice_scatter.default, zeros, rows, 0, 0, 2)
    new = b.call(aten.index_put.default, x, [i], picked)
    b.finished([b.call(aten.mm.default, scattered(b, first), new)])
    outcomes = [
        o for o in analyze_graph(b.graph, Options(target=INDUCTOR)).outcomes if "slice_scatter" in o.op
    ]
    assert [o.fused for o in outcomes] == [True, False]


def test_into_what_a_mask_picks_is_in_place() -> None:
    b = GraphBuilder()
    x, mask = b.placeholder(arange(4, 4)), b.placeholder(torch.ones(4, dtype=torch.bool))
    picked = b.called(aten.index.Tensor, (x, [mask]), b.fresh(x.meta["val"]))
    assert not fused(b, scattered(b, picked), Options(target=INDUCTOR))


def test_rows_that_are_copied_from_their_own_base_are_read() -> None:
    b = GraphBuilder()
    x, i = b.placeholder(arange(4, 4)), b.placeholder(torch.tensor([1, 2, 3, 0]))
    picked = b.call(aten.index.Tensor, x, [i])
    part = b.call(aten.slice.Tensor, picked, 0, 2, 4)
    rows = b.call(aten.copy.default, part, part)
    written = b.call(aten.slice_scatter.default, picked, rows, 0, 0, 2)
    assert not fused(b, written, Options(target=INDUCTOR))


def doubled_after_a_store(b: GraphBuilder, *, is_written: bool) -> None:
    """Build ``x[:, 2].index_fill_(0, i, 2); x.mul_(2)``, or the same after an operator without a store."""
    x, i = b.placeholder(arange(4, 4)), b.placeholder(torch.tensor([1]))
    column = b.call(aten.select.int, x, 1, 2)
    filled = b.call(aten.neg.default, column)
    if is_written:
        filled = b.call(aten.index_put.default, column, [i], b.placeholder(arange(1)))
    whole = b.call(aten.select_scatter.default, x, filled, 1, 2)
    doubled = b.call(aten.mul.Tensor, whole, 2)
    b.finished([b.call(aten.copy_.default, x, doubled)])


@pytest.mark.parametrize("policy", ["memory", "speed"])
@pytest.mark.parametrize("is_written", [True, False])
def test_what_lies_in_its_place_already_is_not_computed(policy: Any, is_written: bool) -> None:
    """The product reads what the filling has left in place."""
    b = GraphBuilder()
    doubled_after_a_store(b, is_written=is_written)
    report = reinplace_graph(b.graph, Options(policy=policy, target=INDUCTOR))
    (outcome,) = [o for o in report.outcomes if o.op == "aten::select_scatter"]
    assert outcome.reinplaced and outcome.fused
    left = b.graph.find_nodes(op="call_function", target=aten.select_scatter.default)
    assert len(left) == (0 if is_written else 1)


def test_a_scatter_that_must_not_be_in_place_is_refused_though_it_is_needless() -> None:
    b = GraphBuilder()
    doubled_after_a_store(b, is_written=True)
    model = build(b.graph, Options(target=INDUCTOR))
    (index,) = model.fused
    assert index not in decide(model, {index: Refusal(Reason.CHEAPER)}).refused
    assert decide(model, {index: Refusal(Reason.ESCAPES)}).refused[index].reason is Reason.ESCAPES


@pytest.mark.parametrize(
    ("policy", "is_read", "of_inputs", "fused"),
    [
        ("speed", True, True, True),
        ("speed", False, True, False),
        ("speed", True, False, False),
        ("memory", True, True, False),
    ],
)
def test_what_is_put_into_a_value_that_is_in_memory_nowhere(
    policy: Any, is_read: bool, of_inputs: bool, fused: bool
) -> None:
    """``y[i] = y[j]``: in place Inductor stores what is put, which it reads off the old elements.

    Functional, what else ``y`` is computed of would be held until then.
    """
    b = GraphBuilder()
    x, i = b.placeholder(arange(4, 4)), b.placeholder(torch.tensor([1, 2]))
    y = b.call(aten.mul.Tensor, x if of_inputs else b.call(aten.cumsum.default, x, 0), 2)
    rows = b.call(aten.index.Tensor, y if is_read else x, [i])
    b.finished([b.call(aten.index_put.default, y, [i], rows)])
    report = reinplace_graph(b.graph, Options(policy=policy, target=INDUCTOR))
    (outcome,) = report.outcomes
    assert outcome.reinplaced and outcome.fused is fused
    assert bool(b.graph.find_nodes(op="call_function", target=aten.index_put.default)) is fused


def is_stored_computed(b: GraphBuilder, part: Node, row: Node) -> bool:
    """Return whether a row is put into a part by a functional scatter, where larger items are seen of it."""
    stored = b.call(aten.slice_scatter.default, part, row, 0, 1, 2)
    b.finished([b.call(aten.view.dtype, stored, torch.int64)])
    (outcome,) = reinplace_graph(b.graph, Options(target=INDUCTOR)).outcomes
    assert not outcome.reinplaced
    return bool(b.graph.find_nodes(op="call_function", target=aten.slice_scatter.default))


@pytest.mark.parametrize(("start", "is_computed"), [(0, True), (2, False)])
def test_a_copy_that_is_seen_as_larger_items_knows_where_it_begins(start: int, is_computed: bool) -> None:
    """What begins its storage begins there in a computed result, too; anything else is copied and written."""
    b = GraphBuilder()
    x, row = (
        b.placeholder(torch.arange(8, dtype=torch.int32)),
        b.placeholder(torch.arange(1, dtype=torch.int32)),
    )
    part = b.call(aten.slice.Tensor, x, 0, start, start + 4)
    assert is_stored_computed(b, part, row) is is_computed


@pytest.mark.parametrize(("width", "is_computed"), [(4, True), (6, False)])
def test_a_copy_with_gaps_that_is_seen_as_larger_items_is_copied_as_it_lies(
    width: int, is_computed: bool
) -> None:
    """Inductor computes a result without the gaps, whose rows would be seen elsewhere."""
    b = GraphBuilder()
    x = b.placeholder(torch.arange(2 * width, dtype=torch.int32).view(2, width))
    row = b.placeholder(torch.arange(4, dtype=torch.int32).view(1, 4))
    part = b.call(aten.slice.Tensor, x, 1, 0, 4)
    assert is_stored_computed(b, part, row) is is_computed
