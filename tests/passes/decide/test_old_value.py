"""Small old values are copied for their later readers, where that lets a large buffer be written in place."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx import Node

from pytest_reinplace.passes import Reason, reinplace
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import assert_equivalent

from ..kinds.test_in_place_forms import held, rewritten, targets
from ..trace import arange, ops

aten = torch.ops.aten
ROWS = torch.tensor([1, 3])


def x() -> Tensor:
    return torch.arange(24, dtype=torch.float32).view(6, 4)


def y() -> Tensor:
    return torch.arange(100, 108, dtype=torch.float32).view(2, 4)


def test_a_small_reader_is_given_a_copy() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        row = cache[2]
        return aten.index_put.default(cache, [rows], y), row.exp()

    report, gm = rewritten(program, x(), y(), ROWS)
    assert [(o.label, o.reason, o.nbytes) for o in report.outcomes if not o.reinplaced] == [
        ("aten::exp.self", Reason.STILL_READ, 16)
    ]
    assert "aten.index_put_.default" in targets(gm)


def test_a_reader_of_all_is_not() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        return aten.index_put.default(cache, [rows], y), cache.exp()

    report, gm = rewritten(program, x(), y(), ROWS)
    assert [o.label for o in report.outcomes if not o.reinplaced] == ["aten::index_put.self"]
    assert "aten.index_put_.default" not in targets(gm)


def test_many_small_readers_may_be_too_many() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
        cache = x + 1
        parts = [cache[i] for i in range(6)]
        new = aten.index_put.default(cache, [rows], y)
        return new, *(part.exp() for part in parts)

    report, _ = rewritten(program, x(), y(), ROWS)
    assert [o.label for o in report.outcomes if not o.reinplaced] == ["aten::index_put.self"]


def test_a_returned_row_is_copied_early_unless_it_has_to_share() -> None:
    def alone(x: Tensor, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        row = cache[2]
        return aten.index_put.default(cache, [rows], y), row

    def shared(x: Tensor, y: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
        cache = x + 1
        row = cache[2]
        return aten.index_put.default(cache, [rows], y), row, row[:2]

    def of_input(x: Tensor, y: Tensor, rows: Tensor) -> Tensor:
        row = x[2]
        aten.copy_.default(x, aten.index_put.default(x, [rows], y))
        return row

    report, _ = rewritten(alone, x(), y(), ROWS)
    assert [(o.op, o.nbytes) for o in report.outcomes if not o.reinplaced] == [("output", 16)]
    for program in (shared, of_input):
        assert all(o.op != "output" for o in rewritten(program, x(), y(), ROWS)[0].outcomes)


def test_a_view_that_is_made_later_is_not_copied_early() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        new = aten.index_put.default(cache, [rows], y)
        return new, cache[2].exp()

    report, _ = rewritten(program, x(), y(), ROWS)
    assert [o.label for o in report.outcomes if not o.reinplaced] == ["aten::index_put.self"]


def test_a_scatter_whose_source_was_copied_away_is_carried_out() -> None:
    """Found by the oracle: the source lay in its place before, so nothing seemed left to write."""

    def program(x: Tensor, y: Tensor, rows: Tensor) -> Tensor:
        part = x.view(24)[8:16].view(2, 4)
        new = aten.index_put.default(x, [rows], part, True)
        back = aten.slice_scatter.default(new, part, 0, 2, 4)
        aten.copy_.default(x, back)
        return back.sum()

    report, gm = rewritten(program, x(), y(), ROWS)
    assert report.clone_bytes == 32
    assert targets(gm).count("aten.copy_.default") == 1


@pytest.mark.parametrize("write", [lambda t: t.neg(), lambda t: t[:1].sum()])
def test_a_reader_after_a_real_write_is_not_given_the_old_value(write: Callable[[Tensor], Tensor]) -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        new = aten.index_put.default(x, [rows], y)
        row = x[1]
        aten.copy_.default(x, new)
        return new.sum(), write(row)

    rewritten(program, x(), y(), ROWS)


def test_an_input_that_is_returned_with_an_old_value_of_it_stays_the_input() -> None:
    """The old value is kept by a copy; the input, the very same tensor by then, is not it."""
    build = GraphBuilder()
    x, v = build.placeholder(arange(3, 2)), build.placeholder(arange(3, 2) + 7)
    first = build.v1(ops.scale.default, x=x, by=v)[-1]
    second = build.v1(ops.scale.default, x=first, by=v)[-1]
    build.call(aten.copy_.default, x, second)
    gm = build.finished([first, x])
    new = copy.deepcopy(gm)
    assert reinplace(new).clone_bytes == 24
    assert_equivalent(gm, new, build.inputs)


def test_a_clone_that_is_made_too_late_is_made_early() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        row = cache[2]
        new = aten.index_put.default(cache, [rows], y)
        return new, aten.index_put.default(row, [rows], y[0, 1:3])

    report, gm = rewritten(program, x(), y(), ROWS)
    assert report.clones == ["aten::index_put.self"] and report.clone_bytes == 16
    assert targets(gm).count("aten.clone.default") == 1
    assert targets(gm).count("aten.index_put_.default") == 2


def test_a_clone_that_another_argument_needs_too_is_not() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        row = cache[2]
        new = aten.index_put.default(cache, [rows], y)
        return new, aten.index_put.default(row, [rows], row[0:2])

    report, _ = rewritten(program, x(), y(), ROWS)
    assert report.clone_bytes >= 16


def test_a_copy_for_a_later_writer_does_not_serve_another_operand() -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        part, other = cache[1:3], cache[0:2]
        moved = aten.slice_scatter.default(cache, other, 0, 1, 3)
        return moved, aten.slice_scatter.default(part, moved[0:1] * 2, 0, 1, 2)

    report, gm = rewritten(program, x())
    assert report.clone_bytes == 2 * 2 * 4 * x().shape[1]
    assert targets(gm).count("aten.clone.default") == 2


def wrapped_row(use: Callable[[GraphBuilder, Node, int], Node], start: int) -> int:
    """Return the bytes cloned where a wrapper writes a row of a cache whose new value is needed, too."""
    b = GraphBuilder()
    source = b.placeholder(torch.arange(24, dtype=torch.int32))
    value = b.placeholder(torch.tensor([77], dtype=torch.int32))
    cache = b.call(aten.mul.Tensor, source, 3)
    row = b.call(aten.slice.Tensor, cache, 0, start, start + 5)
    index = b.call(aten.full.default, [1], start + 2, dtype=torch.int64)
    new = b.call(aten.index_put.default, cache, [index], value)
    seen = use(b, b.v1(adversary.operator("bump"), x=row)[-1], start)
    report, _ = held(b, [new, b.call(aten.neg.default, seen)])
    return report.clone_bytes


def wider(b: GraphBuilder, row: Node, start: int) -> Node:
    return b.call(aten.view.dtype, b.call(aten.slice.Tensor, row, 0, start % 2, start % 2 + 4), torch.int64)


@pytest.mark.parametrize(("start", "nbytes"), [(1, 96), (2, 20)])
def test_an_early_clone_begins_where_a_view_of_another_dtype_can(start: int, nbytes: int) -> None:
    assert wrapped_row(wider, start) == nbytes


@pytest.mark.parametrize(("named", "nbytes"), [(True, 96), (False, 20)])
def test_an_early_clone_is_not_named_by_offsets(named: bool, nbytes: int) -> None:
    def use(b: GraphBuilder, row: Node, start: int) -> Node:
        if named:
            return b.call(aten.as_strided.default, row, [2], [1], start + 1)
        return b.call(aten.slice.Tensor, row, 0, 1, 3)

    assert wrapped_row(use, 2) == nbytes


@pytest.mark.parametrize(("own", "nbytes"), [(True, 192), (False, 32)])
def test_an_early_clone_may_be_of_one_of_two_bases_where_the_other_is_named(own: bool, nbytes: int) -> None:
    b = GraphBuilder()
    cache, other = (b.call(aten.mul.Tensor, b.placeholder(torch.arange(24) + i), 3) for i in range(2))
    row = b.call(aten.slice.Tensor, cache, 0, 2, 6)
    index = b.call(aten.full.default, [1], 3, dtype=torch.int64)
    value = b.call(aten.full.default, [1], 7, dtype=torch.int64)
    new = b.call(aten.index_put.default, cache, [index], value)
    base = row if own else other
    part = b.call(aten.slice.Tensor, base, 0, 0, 4, 2)  # the wrapper names it by its offset
    pairs = {"x": (base, part), "y": (other, other) if own else (row, row)}
    *_, one, two = b.v2(adversary.operator("pair"), pairs, other=value)
    report, _ = held(b, [new, b.call(aten.neg.default, one), b.call(aten.neg.default, two)])
    assert report.clone_bytes == nbytes


def test_an_old_value_that_was_kept_is_not_what_lies_there() -> None:
    """Written over the new one it would be lost to the copy back into the input."""
    build = GraphBuilder()
    x, v = build.placeholder(arange(4, 3)), build.placeholder(arange(4, 3) + 7)
    first = build.v1(ops.scale.default, x=x, by=v)[-1]
    new = build.call(aten.slice_scatter.default, first, x, 0, 0, 4)
    build.call(aten.copy_.default, x, first)
    gm = build.finished([build.call(aten.exp.default, new)])
    rewritten_gm = copy.deepcopy(gm)
    reinplace(rewritten_gm)
    assert_equivalent(gm, rewritten_gm, build.inputs)


def overwritten_later(part: slice) -> Callable[..., Tensor]:
    def program(x: Tensor, y: Tensor, rows: Tensor, other: Tensor) -> Tensor:
        new = aten.index_put.default(x, [rows], y)
        read = new[part]
        x.copy_(other)
        return read.exp()

    return program


def test_a_small_reader_is_given_a_copy_before_the_input_is_overwritten() -> None:
    report, gm = rewritten(overwritten_later(slice(2, 3)), x(), y(), ROWS, x() * 3)
    assert [(o.label, o.added, o.nbytes) for o in report.outcomes if not o.reinplaced] == [
        ("aten::exp.self", True, 16)
    ]
    order = targets(gm)
    assert order.index("aten.index_put_.default") < order.index("aten.clone.default")
    assert order.index("aten.clone.default") < order.index("aten.copy_.default")


def test_a_reader_of_all_that_is_overwritten_later_is_not() -> None:
    report, gm = rewritten(overwritten_later(slice(None)), x(), y(), ROWS, x() * 3)
    assert "aten::index_put.self" in report.clones and "aten.index_put_.default" not in targets(gm)


def test_a_write_before_the_copy_is_made_is_held_back_by_its_reader() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        new = aten.index_put.default(x, [rows], y)
        read = new[2:3]
        newer = aten.index_put.default(new, [rows + 1], y)
        total = newer.sum()
        x.copy_(other)
        return read.exp(), total

    rewritten(program, x(), y(), ROWS, x() * 3)


@pytest.mark.parametrize("source", [True, False])
def test_a_scatter_by_offsets_may_be_given_a_copy_of_what_it_puts_but_not_of_what_it_puts_it_into(
    source: bool,
) -> None:
    b = GraphBuilder()
    given, other = b.placeholder(arange(6, 4)), b.placeholder(arange(1, 4) + 50)
    cache = b.call(aten.mul.Tensor, given, 3)
    row = b.call(aten.select.int, cache, 0, 2)
    into = b.call(aten.mul.Tensor, given, 5)
    new = b.call(aten.slice_scatter.default, cache, other, 0, 2, 3)
    if source:
        put = b.call(aten.as_strided_scatter.default, into, row, [4], [1], 4)
    else:
        two = b.call(aten.slice.Tensor, b.call(aten.select.int, into, 0, 0), 0, 0, 2)
        put = b.call(aten.as_strided_scatter.default, row, two, [2], [1], 8)
    report, _ = held(b, [new, put])
    in_place = {o.label for o in report.outcomes if o.reinplaced}
    assert ("aten::slice_scatter.self" in in_place) == source
    if source:
        assert report.clone_bytes == row.meta["val"].nbytes


@pytest.mark.parametrize("absolute", [True, False])
def test_a_wrapper_that_names_bytes_by_offsets_is_given_no_copy_of_its_base(absolute: bool) -> None:
    """Its results are not taken one by one, so it stays as it is, and the copy would begin elsewhere."""
    b = GraphBuilder()
    cache = b.call(aten.mul.Tensor, b.placeholder(arange(6, 4)), 3)
    row = b.call(aten.select.int, cache, 0, 2)
    part = b.call(aten.slice.Tensor, row, 0, 0, 4, 2) if absolute else b.call(aten.slice.Tensor, row, 0, 1, 3)
    where, value = b.placeholder(torch.tensor([2])), b.placeholder(arange(1, 4) + 90)
    new = b.call(aten.index_put.default, cache, [where], value)
    wrapper = b.v2(adversary.operator("bump"), {"x": (row, part)})[-1].args[0]
    both = b.graph.call_function(operator.getitem, (wrapper, slice(0, 2)))
    both.meta["val"] = wrapper.meta["val"][:2]
    last = b.graph.call_function(operator.getitem, (both, 1))
    last.meta["val"] = both.meta["val"][1]
    report, _ = held(b, [new, b.call(aten.neg.default, last)])
    assert ("aten::index_put.self" in report.reinplaced) is not absolute
