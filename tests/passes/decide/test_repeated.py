"""A scatter whose operand was made by a scatter of the same source, and what only looks like one."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes import reinplace
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import assert_equivalent

from ..kinds.test_in_place_forms import held, rewritten, targets
from ..trace import arange

aten = torch.ops.aten


def writes(b: GraphBuilder, outputs: list[torch.fx.Node]) -> int:
    """Return how many scatters of a graph are carried out."""
    _, gm = held(b, outputs)
    return sum("copy_" in target or "scatter" in target for target in targets(gm))


@pytest.mark.parametrize("scattered", [True, False])
def test_a_kernel_that_was_given_the_source_did_not_store_it(scattered: bool) -> None:
    b = GraphBuilder()
    cache = b.call(aten.mul.Tensor, b.placeholder(arange(6, 4)), 2)
    source = b.placeholder(arange(6, 4) + 50)
    if scattered:
        first = b.call(aten.slice_scatter.default, cache, source, 0, 0, 6)
    else:
        first = b.v1(adversary.operator("rows"), x=cache, other=source)[-1]
    assert writes(b, [b.call(aten.slice_scatter.default, first, source, 0, 0, 6)]) == 1 + scattered


def repeated(second: Callable[[Tensor, Tensor], Tensor]) -> int:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        new = aten.slice_scatter.default(x + 1, y[:2], 0, 2, 4)
        again = second(new, y)
        return again, (new * 2)[0] + again[0]

    report, _ = rewritten(program, arange(6, 4), arange(4, 4) + 50)
    return report.clone_bytes


@pytest.mark.parametrize(
    "second",
    [
        lambda new, y: aten.slice_scatter.default(new, y[1:3], 0, 2, 4),
        lambda new, y: aten.slice_scatter.default(new, y[:2], 0, 1, 3),
        lambda new, y: aten.slice_scatter.default(new, y[:2].neg(), 0, 2, 4),
    ],
)
def test_one_of_something_else_or_elsewhere_does(second: Callable[[Tensor, Tensor], Tensor]) -> None:
    assert repeated(second) > 0


@pytest.mark.parametrize("between", [True, False])
def test_a_source_that_is_overwritten_in_between_is_another(between: bool) -> None:
    b = GraphBuilder()
    x, y, z = (b.placeholder(arange(4, 2) + start) for start in (0, 20, 40))
    cache = b.call(aten.mul.Tensor, x, 3)
    first = b.call(aten.slice_scatter.default, cache, y, 0, 0, 4)
    if between:
        b.call(aten.copy_.default, y, z)
    second = b.call(aten.slice_scatter.default, first, y, 0, 0, 4)
    if not between:
        b.call(aten.copy_.default, y, z)
    gm = b.finished([second])
    new = copy.deepcopy(gm)
    reinplace(new)
    assert_equivalent(gm, new, b.inputs)
    written = [n for n in new.graph.nodes if n.target in (aten.copy_.default, aten.slice_scatter.default)]
    assert len(written) == 3


def put_again(between: Callable[[Tensor, Tensor, Tensor], Tensor]) -> int:
    """Return how many writes are left of a scatter that is repeated, with something else in between."""

    def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        first = aten.slice_scatter.default(x, y[:2], 0, 2, 4)
        early = first.sum()
        other = between(x, first, y)
        x.copy_(aten.slice_scatter.default(first, y[:2], 0, 2, 4))
        return early, other

    _, gm = rewritten(program, arange(6, 4), arange(4, 4) + 50)
    return len([n for n in gm.graph.nodes if n.target in (aten.copy_.default, aten.slice_scatter.default)])


def overwritten(x: Tensor, first: Tensor, y: Tensor) -> Tensor:
    return aten.select_scatter.default(first, y[3], 0, 2).sum()


def really_overwritten(x: Tensor, first: Tensor, y: Tensor) -> Tensor:
    x[2:4].copy_(y[2:])
    return y.sum()


@pytest.mark.parametrize(
    ("between", "writes"),
    [(lambda x, first, y: first.exp(), 2), (overwritten, 3), (really_overwritten, 3)],
)
def test_what_is_written_over_in_between_is_written_again(
    between: Callable[[Tensor, Tensor, Tensor], Tensor], writes: int
) -> None:
    """The second scatter reads none of these bytes, so it holds no write into them back."""
    assert put_again(between) == writes


@pytest.mark.parametrize("converted", [True, False])
def test_what_is_stored_as_another_dtype_is_converted(converted: bool) -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        first = aten.slice_scatter.default(x + 1, y, 0, 2, 4)
        dtype = torch.int32 if converted else torch.float32
        return aten.slice_scatter.default(aten.view.dtype(first, dtype), y, 0, 2, 4)

    values = torch.arange(8, dtype=torch.int32).view(2, 4)
    _, gm = rewritten(program, torch.arange(24.0).view(6, 4), values)
    assert len([n for n in gm.graph.nodes if n.target is aten.copy_.default]) == 2


@pytest.mark.parametrize("same", [True, False])
def test_parts_that_begin_where_only_the_call_tells_are_not_the_same(same: bool) -> None:
    def program(x: Tensor, y: Tensor, one: Tensor, two: Tensor) -> Tensor:
        start, again = one.shape[0], (one if same else two).shape[0]
        first = aten.slice_scatter.default(x + 1, y, 0, start, start + 2)
        return aten.slice_scatter.default(first, y, 0, again, again + 2)

    inputs = [torch.arange(28.0).view(7, 4), torch.arange(8.0).view(2, 4) + 50, arange(2), arange(3)]
    gm = make_fx(program, tracing_mode="symbolic")(*inputs)
    new = copy.deepcopy(gm)
    assert reinplace(new, order="keep").clone_bytes == 0
    assert_equivalent(gm, new, inputs)


def put_twice(second: Callable[..., Tensor]) -> int:
    """Return the bytes cloned where rows are stored, and then others into what was there before."""

    def program(x: Tensor, rows: Tensor, others: Tensor, y: Tensor) -> Tensor:
        total = aten.index_put.default(x, [rows], y).sum()
        x.copy_(second(x, rows, others, y * 2))
        return total

    report, _ = rewritten(
        program, arange(6, 4), torch.tensor([3, 1]), torch.tensor([1, 3]), arange(2, 4) + 50
    )
    return report.clone_bytes


@pytest.mark.parametrize(
    "second",
    [
        lambda x, rows, others, y: aten.index_put.default(x, [others], y),
        lambda x, rows, others, y: aten.index_put.default(x, [None, rows], y[:, :1].sum()),
        lambda x, rows, others, y: aten.index_put.default(x, [rows], y, True),
        lambda x, rows, others, y: aten.index_put.default(x, [rows], x[4:]),
        lambda x, rows, others, y: aten.index_copy.default(x, 0, others, y),
        lambda x, rows, others, y: aten.index_put.default(x.flip(0), [rows], y),
        lambda x, rows, others, y: aten.cat([x[:1], aten.index_put.default(x[1:], [rows], y)]),
    ],
)
def test_others_have_to_be(second: Callable[..., Tensor]) -> None:
    assert put_twice(second) > 0


@pytest.mark.parametrize("between", [True, False])
def test_rows_by_indices_that_are_overwritten_in_between_are_others(between: bool) -> None:
    b = GraphBuilder()
    x, rows = b.placeholder(arange(6, 4)), b.placeholder(torch.tensor([3, 1]))
    more, y = b.placeholder(torch.tensor([0, 5])), b.placeholder(arange(2, 4) + 50)
    cache = b.call(aten.mul.Tensor, x, 3)
    total = b.call(aten.sum.default, b.call(aten.index_put.default, cache, [rows], y))
    if between:
        b.call(aten.copy_.default, rows, more)
    second = b.call(aten.index_put.default, cache, [rows], b.call(aten.neg.default, y))
    if not between:
        b.call(aten.copy_.default, rows, more)
    report, _ = held(b, [total, second])
    assert report.clone_bytes > 0
