"""View scatters into values that are in memory for nobody else: computed with what makes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.fx import Node

from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.facts.target import NODE_BY_NODE, Target
from pytest_reinplace.passes.reinplacing.run import analyze_graph

from ..trace import arange, ops

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


def test_into_what_a_mask_picks_is_in_place() -> None:
    b = GraphBuilder()
    x, mask = b.placeholder(arange(4, 4)), b.placeholder(torch.ones(4, dtype=torch.bool))
    picked = b.called(aten.index.Tensor, (x, [mask]), b.fresh(x.meta["val"]))
    assert not fused(b, scattered(b, picked), Options(target=INDUCTOR))


@pytest.mark.parametrize("computed", [True, False])
def test_rows_that_are_made_of_their_own_base_are_computed_on_the_way(computed: bool) -> None:
    """``base[0:2] = base[2:4] + 1``; but not where a kernel reads the base for them."""
    b = GraphBuilder()
    x, i = b.placeholder(arange(4, 4)), b.placeholder(torch.tensor([1, 2, 3, 0]))
    picked = b.call(aten.index.Tensor, x, [i])
    part = b.call(aten.slice.Tensor, picked, 0, 2, 4)
    made = b.call(aten.add.Tensor, part, 1) if computed else b.call(aten.mm.default, part, x)
    rows = b.call(aten.copy.default, part, made)
    written = b.call(aten.slice_scatter.default, picked, rows, 0, 0, 2)
    assert fused(b, written, Options(target=INDUCTOR)) is computed


def test_rows_that_others_use_as_well_are_in_place() -> None:
    b = GraphBuilder()
    x, i = b.placeholder(arange(4, 4)), b.placeholder(torch.tensor([1, 2, 3, 0]))
    picked = b.call(aten.index.Tensor, x, [i])
    made = b.call(aten.add.Tensor, b.call(aten.slice.Tensor, picked, 0, 2, 4), 1)
    written = b.call(aten.slice_scatter.default, picked, made, 0, 0, 2)
    product = b.call(
        aten.mm.default, written, b.call(aten.mm.default, b.call(aten.permute.default, made, [1, 0]), made)
    )
    assert not fused(b, product, Options(target=INDUCTOR))


@pytest.mark.parametrize("is_read", [True, False])
def test_a_part_of_a_part_is_computed_with_the_whole(is_read: bool) -> None:
    """What the whole is used for, here by a reduction, does not matter; who reads what was there does."""
    b = GraphBuilder()
    x, i = b.placeholder(arange(4, 4)), b.placeholder(torch.tensor([1, 2, 3, 0]))
    w = b.placeholder(arange(2, 2))
    picked = b.call(aten.index.Tensor, x, [i])
    rows = b.call(aten.slice.Tensor, picked, 0, 0, 2)
    inner = b.call(aten.slice_scatter.default, rows, w, 1, 0, 2)
    outer = b.call(aten.slice_scatter.default, picked, inner, 0, 0, 2)
    results = [b.call(aten.sum.default, outer), b.call(aten.sub.Tensor, outer, 1)]
    old = [b.call(aten.mm.default, picked, x)] if is_read else []
    b.finished([*results, *old])
    outcomes = analyze_graph(b.graph, Options(target=INDUCTOR, order="keep")).outcomes
    found = [o.fused for o in outcomes if o.op == "aten::slice_scatter"]
    assert found == [not is_read] * 2


class Fusing(Target):
    """Computes scatters on the way, and has no defects."""

    fuses = True


Written = Callable[[GraphBuilder, Node, Node], Node]


def twice(b: GraphBuilder, x: Node, w: Node, *, begin: int = 1) -> Node:
    """``x[0:2] = w; x[1:3] *= w``."""
    one = b.call(aten.slice_scatter.default, x, w, 0, 0, 2)
    made = b.call(aten.mul.Tensor, b.call(aten.slice.Tensor, one, 0, begin, begin + 2), w)
    return b.call(aten.slice_scatter.default, one, made, 0, 1, 3)


def twice_of_others(b: GraphBuilder, x: Node, w: Node) -> Node:
    """``x[0:2] = w; x[1:3] = x[0:2] * w``: one kernel would need the old elements beside the new ones."""
    return twice(b, x, w, begin=0)


def once(b: GraphBuilder, x: Node, w: Node) -> Node:
    return b.call(aten.slice_scatter.default, x, w, 0, 0, 2)


def twice_with_a_reader(b: GraphBuilder, x: Node, w: Node) -> Node:
    one = b.call(aten.slice_scatter.default, x, w, 0, 0, 2)
    made = b.call(aten.mm.default, b.call(aten.slice.Tensor, one, 0, 0, 2), b.placeholder(arange(4, 4)))
    return b.call(aten.slice_scatter.default, one, made, 0, 1, 3)


def twice_before_a_kernel(b: GraphBuilder, x: Node, w: Node) -> Node:
    """In place there is one kernel less: what is computed elsewhere must be copied back."""
    return b.v1(ops.scale.default, x=twice(b, x, w), by=w)[-1]


def twice_and_used(b: GraphBuilder, x: Node, w: Node) -> Node:
    """What is stored is computed for others as well: their kernels store it."""
    made = [b.call(aten.add.Tensor, w, i) for i in (1, 2)]
    one = b.call(aten.slice_scatter.default, x, made[0], 0, 0, 2)
    two = b.call(aten.slice_scatter.default, one, made[1], 0, 2, 4)
    products = [b.call(aten.mm.default, m, b.placeholder(arange(4, 4))) for m in made]
    for product in products:
        b.call(aten.copy_.default, w, b.call(aten.mul.Tensor, product, 2))
    return two


def parts(b: GraphBuilder, x: Node, w: Node) -> Node:
    """``x[0:2, 0:2] = w[:, 0:2]; x[2:4, 0:2] = w[:, 0:2]``: a part of a part is computed with the rest."""
    value = b.call(aten.slice.Tensor, w, 1, 0, 2)
    for i in (0, 2):
        rows = b.call(aten.slice.Tensor, x, 0, i, i + 2)
        inner = b.call(aten.slice_scatter.default, rows, value, 1, 0, 2)
        x = b.call(aten.slice_scatter.default, x, inner, 0, i, i + 2)
    return x


def twice_after_a_kernel(b: GraphBuilder, x: Node, w: Node) -> Node:
    return twice(b, b.v1(ops.scale.default, x=x, by=w)[-1], w)


def four_times(b: GraphBuilder, x: Node, w: Node) -> Node:
    """Two of the stores are computed of what the other two left, and not in turn."""
    two = twice(b, x, w)
    low, high = (b.call(aten.slice.Tensor, two, 0, i, i + 2) for i in (0, 2))
    one = b.call(aten.slice_scatter.default, two, b.call(aten.add.Tensor, low, high), 0, 0, 2)
    return b.call(aten.slice_scatter.default, one, b.call(aten.sub.Tensor, low, high), 0, 2, 4)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (twice, [True, True]),
        (twice_after_a_kernel, [False, False]),
        (four_times, [False] * 4),
        (twice_of_others, [False, False]),
        (parts, [True] * 4),
        (twice_and_used, [False, False]),
        (once, [False]),
        (twice_with_a_reader, [False, False]),
        (twice_before_a_kernel, [False, False]),
    ],
)
@pytest.mark.parametrize("rows", [4, 65536])
def test_stores_into_a_small_input_are_one_kernel(written: Written, expected: list[bool], rows: int) -> None:
    b = GraphBuilder()
    x, w = b.placeholder(arange(rows, 4)), b.placeholder(arange(2, 4))
    b.call(aten.copy_.default, x, written(b, x, w))
    b.finished([])
    report = analyze_graph(b.graph, Options(target=Fusing()))
    assert not {"aten::copy_.self", "aten::slice_scatter.self"} & set(report.clones)
    is_small = rows == 4
    found = [o.fused for o in report.outcomes if o.op == "aten::slice_scatter"]
    assert found == [is_small and e for e in expected]


@pytest.mark.parametrize("is_own", [True, False])
def test_what_is_copied_into_another_input_is_computed_there(is_own: bool) -> None:
    """Where it could be in the memory of the input nothing is copied."""
    b = GraphBuilder()
    x, w = b.placeholder(arange(65536, 4)), b.placeholder(arange(65536, 4))
    (made,) = b.v1(ops.scale.default, x=x if is_own else b.call(aten.cumsum.default, w, 0), by=w)[-1:]
    written = b.call(aten.slice_scatter.default, made, b.call(aten.slice.Tensor, w, 0, 0, 2), 0, 0, 2)
    b.call(aten.copy_.default, x, written)
    b.finished([])
    report = analyze_graph(b.graph, Options(target=Fusing()))
    assert [o.fused for o in report.outcomes if o.op == "aten::slice_scatter"] == [not is_own]


def test_stores_that_are_run_one_by_one_are_in_place() -> None:
    b = GraphBuilder()
    x, w = b.placeholder(arange(4, 4)), b.placeholder(arange(2, 4))
    b.call(aten.copy_.default, x, twice(b, x, w))
    b.finished([])
    assert not any(o.fused for o in analyze_graph(b.graph, Options(target=NODE_BY_NODE)).outcomes)
