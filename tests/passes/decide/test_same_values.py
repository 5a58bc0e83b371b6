"""Scatters that store what may look like what is there, and is not or may not be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch.fx import Node

from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.memory.geometry import Geometry, clipped
from pytest_reinplace.passes.memory.region import Region

from ..kinds.test_in_place_forms import held, rewritten
from ..memory.test_region import bytes_of, regions
from ..trace import arange

aten = torch.ops.aten
BYTES = 6 * 2 * 4

Take = Callable[[Tensor, Tensor], Tensor]


def numbers(rows: int, start: int = 0) -> Tensor:
    return torch.arange(start, start + rows * 2, dtype=torch.float32).view(rows, 2)


def stored(take: Take, dtype: torch.dtype = torch.float32, other: torch.dtype = torch.float32) -> int:
    """Return the bytes cloned where something is stored into rows 2 and 3 of an input that is kept."""

    def program(x: Tensor, y: Tensor) -> Tensor:
        return aten.slice_scatter.default(x, take(x, y), 0, 2, 4).sum(1)

    report, _ = rewritten(program, numbers(6, 1).to(dtype), numbers(4, 50).to(other))
    return report.clone_bytes


def over(y: Tensor, rows: Tensor, start: int) -> Tensor:
    return aten.slice_scatter.default(y, rows, 0, start, start + len(rows))


def put(y: Tensor, rows: Tensor, start: int) -> Tensor:
    return over(y * 2, rows, start)


@pytest.mark.parametrize(
    "take",
    [
        lambda x, y: torch.cat([x[1:3], y])[:2],
        lambda x, y: torch.cat([y, x])[5:7],
        lambda x, y: torch.cat([y[:2], x])[6:8],
        lambda x, y: over(x[:1].expand(4, 2), y[:1], 0)[2:4],
        lambda x, y: x.flip(0)[2:4],
        lambda x, y: x.flip(0, 1)[2:4].flip(0),
        lambda x, y: x.roll(1, 0).flip(0)[2:4].flip(0),
        lambda x, y: put(y, torch.cat([x[2:4], y])[:2], 1)[:2],
        lambda x, y: over(put(y, torch.cat([x[2:4], y])[:2], 0), y[:1], 1)[:2],
        lambda x, y: aten.index_put.default(put(y, x[2:4], 0), [torch.tensor([1])], y[0])[:2],
    ],
)
def test_what_came_from_elsewhere_is(take: Take) -> None:
    assert stored(take) >= BYTES


def as_int(x: Tensor) -> Tensor:
    return aten.view.dtype(x, torch.int32)


def as_float(x: Tensor) -> Tensor:
    return aten.view.dtype(x, torch.float32)


def test_what_is_converted_on_the_way_is_something_else() -> None:
    assert stored(lambda x, y: torch.cat([as_int(x)[2:4], as_int(y)])[:2]) >= BYTES
    whole = torch.int32
    assert stored(lambda x, y: as_int(torch.cat([x[2:4], y]))[:2], whole) >= BYTES
    assert stored(lambda x, y: as_int(put(y, x[2:4].flip(0).flip(0), 0))[:2], whole) >= BYTES


@pytest.mark.parametrize(
    "joined",
    [
        lambda x, y: torch.cat([x, y], 1),
        lambda x, y: aten.slice_scatter.default(y.expand(4, 2) + 0, x, 1, 0, 1),
    ],
)
def test_an_element_is_all_of_its_bytes(joined: Take) -> None:
    """Two halves are joined to elements of twice the size, of which only the first halves are the same."""

    def program(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        one, two = joined(x, y).view(torch.int64), joined(x, z).view(torch.int64)
        return aten.slice_scatter.default(one, two[1:2], 0, 1, 2).neg()

    halves = [torch.arange(start, start + 4, dtype=torch.int32).view(4, 1) for start in (0, 10, 20)]
    _, gm = rewritten(program, *halves)
    assert aten.copy_.default in [n.target for n in gm.graph.nodes]


@pytest.mark.parametrize("step", [1, 2])
def test_of_elements_stored_in_one_place_only_the_last_is_there(step: int) -> None:
    def take(x: Tensor, y: Tensor) -> Tensor:
        new = aten.as_strided_scatter.default(y * 2, x[2:4], [2, 2], [step, 1], 0)
        return aten.as_strided.default(new, [2, 2], [step, 1], 0)

    assert stored(take) == BYTES


def hidden(x: Tensor) -> Tensor:
    """Return a view, which no schema says."""
    return x[2:4]


@pytest.mark.parametrize("first", ["scatter", "cat"])
@pytest.mark.parametrize("is_known", [True, False])
def test_what_may_be_part_of_an_input_may_have_changed(is_known: bool, first: str) -> None:
    b = GraphBuilder()
    x, y, w = b.placeholder(arange(6, 2)), b.placeholder(arange(4, 2) + 50), b.placeholder(arange(6, 2) + 90)
    if is_known:
        part = b.call(aten.neg.default, b.call(aten.slice.Tensor, x, 0, 2, 4))
    else:
        part = b.called(hidden, (x,), b.fresh(torch.empty(2, 2)))
    cache = b.call(aten.neg.default, y)
    if first == "scatter":
        made = b.call(aten.slice_scatter.default, cache, part, 0, 0, 2)
    else:
        made = b.call(aten.cat.default, [part, cache])
    b.call(aten.copy_.default, x, w)
    new = b.call(aten.slice_scatter.default, made, part, 0, 0, 2)
    _, gm = held(b, [b.call(aten.neg.default, new)])
    inner = [n for n in gm.graph.nodes if n.target is aten.copy_.default and n.args[0].name != "arg0"]
    assert len(inner) == 1 + (first == "scatter")


@pytest.mark.parametrize("is_stale", [True, False])
def test_of_a_view_with_another_views_fake_value_nothing_is_known(is_stale: bool) -> None:
    """A pass that replaced an operand may have left one: which bytes it means is not said."""
    b = GraphBuilder()
    x, y = b.placeholder(arange(6, 2)), b.placeholder(arange(4, 2) + 50)
    rows = b.call(aten.slice.Tensor, x, 0, 2, 4)
    old = b.call(aten.slice.Tensor, b.call(aten.cat.default, [rows, y]), 0, 0, 2)
    square = b.call(aten.neg.default, b.call(aten.slice.Tensor, y, 0, 0, 2))
    new = b.call(aten.slice_scatter.default, square, old, 0, 0, 2)
    if is_stale:
        turned = b.called(aten.permute.default, (new, [1, 0]), b.fresh(torch.empty(2, 2).t()))
    else:
        turned = b.call(aten.permute.default, b.call(aten.permute.default, new, [1, 0]), [1, 0])
    report, _ = held(b, [b.call(aten.neg.default, b.call(aten.slice_scatter.default, x, turned, 0, 2, 4))])
    assert report.clone_bytes >= BYTES


def taken_out(b: GraphBuilder, written: int) -> tuple[Node, Node, Node, Node]:
    """Return two inputs, one of so many rows to write with, and a copy of two rows of the first."""
    x, y = b.placeholder(arange(6, 2)), b.placeholder(arange(4, 2) + 50)
    w = b.placeholder(arange(written, 2) + 90)
    rows = b.call(aten.slice.Tensor, x, 0, 2, 4)
    return x, y, w, b.call(aten.slice.Tensor, b.call(aten.cat.default, [rows, y]), 0, 0, 2)


@pytest.mark.parametrize("before", [True, False])
def test_an_input_is_another_after_a_real_write(before: bool) -> None:
    b = GraphBuilder()
    x, _, w, old = taken_out(b, 6)
    if before:
        b.call(aten.copy_.default, x, w)
    new = b.call(aten.slice_scatter.default, x, old, 0, 2, 4)
    total = b.call(aten.sum.default, new)
    if not before:
        b.call(aten.copy_.default, x, w)
    report, _ = held(b, [total])
    assert "aten::slice_scatter.self" in (report.clones if before else report.reinplaced)


def siblings(second: Callable[[GraphBuilder, Node, Node], Node]) -> list[str]:
    """Return what is cloned where two values are made of a buffer, and the first is read after the second."""
    b = GraphBuilder()
    x, y = b.placeholder(arange(6, 2)), b.placeholder(arange(4, 2) + 50)
    cache, rows = b.call(aten.neg.default, x), b.call(aten.slice.Tensor, y, 0, 0, 2)
    one = b.call(aten.slice_scatter.default, cache, rows, 0, 2, 4)
    two = second(b, cache, y)
    late = b.call(aten.sum.default, two)
    report, _ = held(b, [late, b.call(aten.neg.default, one)])
    return report.clones


def scattered(start: int, at: int) -> Callable[[GraphBuilder, Node, Node], Node]:
    def second(b: GraphBuilder, cache: Node, y: Node) -> Node:
        rows = b.call(aten.slice.Tensor, y, 0, start, start + 2)
        return b.call(aten.slice_scatter.default, cache, rows, 0, at, at + 2)

    return second


def test_a_reader_of_what_another_stores_elsewhere_sees_a_difference() -> None:
    assert siblings(scattered(1, 2)) != []
    assert siblings(scattered(0, 1)) != []
    assert siblings(scattered(0, 3)) != []


@pytest.mark.parametrize("before", [True, False])
def test_what_is_read_of_an_input_after_a_real_write_is_what_was_written(before: bool) -> None:
    """The write covers some of the bytes only, so that the others are still those that were there."""
    b = GraphBuilder()
    x, y, w, old = taken_out(b, 1)
    cache = b.call(aten.slice_scatter.default, x, b.call(aten.slice.Tensor, y, 0, 0, 1), 0, 3, 4)
    new = b.call(aten.slice_scatter.default, cache, old, 0, 2, 4)
    if before:
        b.call(aten.copy_.default, b.call(aten.slice.Tensor, x, 0, 3, 4), w)
    seen = b.call(aten.neg.default, x)
    held(b, [seen, b.call(aten.neg.default, new)])


def lost(between: Callable[[Tensor, Tensor, Tensor], Tensor]) -> int:
    """Return the copies where rows are stored again, with something else in between."""

    def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        first = aten.slice_scatter.default(x, torch.cat([y, x])[:2], 0, 2, 4)
        early = first.sum()
        other = between(x, first, y)
        x.copy_(aten.slice_scatter.default(first, torch.cat([y, x])[:2], 0, 2, 4))
        return early, other

    _, gm = rewritten(program, numbers(6), numbers(4, 50))
    return len([n for n in gm.graph.nodes if n.target in (aten.copy_.default, aten.slice_scatter.default)])


def other_buffer(x: Tensor, first: Tensor, y: Tensor) -> Tensor:
    """Write the same bytes of another buffer, in place."""
    return aten.select_scatter.default(y * 2, x[0], 0, 2)


def test_what_is_overwritten_in_between_is_stored_again() -> None:
    assert lost(other_buffer) == 3
    assert lost(lambda x, first, y: first.exp()) == 2
    assert lost(lambda x, first, y: aten.select_scatter.default(first, y[3], 0, 2).sum()) == 3
    assert lost(lambda x, first, y: aten.select_scatter.default(first, y[3], 0, 5).sum()) == 2

    def really(x: Tensor, first: Tensor, y: Tensor) -> Tensor:
        x[2:4].copy_(y[2:])
        return y.sum()

    assert lost(really) == 3


@pytest.mark.parametrize(("count", "is_read"), [(7, False), (4, False), (3, True)])
def test_bytes_that_lie_outside_or_are_overwritten_are_not_read(count: int, is_read: bool) -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(2, 2, 4))
    flat = b.call(aten.view.default, x, [16])
    part = b.call(aten.slice.Tensor, flat, 0, 5, 13)
    fresh = b.call(aten.neg.default, b.call(aten.slice.Tensor, flat, 0, 0, count))
    rows = b.call(aten.neg.default, b.call(aten.slice.Tensor, x, 1, 1, 2))
    new = b.call(aten.slice_scatter.default, x, rows, 1, 0, 1)  # elements 0 to 3, and 8 to 11
    late = b.call(aten.as_strided_scatter.default, part, fresh, [count], [1], 12 - count)
    b.call(aten.copy_.default, x, new)
    report, _ = held(b, [b.call(aten.neg.default, late)])
    assert ("aten::slice_scatter.self" in report.clones) is is_read


@settings(max_examples=1000, deadline=None)
@given(regions(), regions())
def test_a_clipped_region_holds_all_that_is_shared(region: Region, window: Region) -> None:
    part = bytes_of(clipped(Geometry(), region, window))
    if 0 not in (*region.sizes, *window.sizes):
        assert bytes_of(region) & bytes_of(window) <= part <= bytes_of(region)
