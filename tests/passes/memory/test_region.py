"""Regions against brute force: which bytes, whether they meet, whether one holds the other."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.utils._sympy.functions import Max

from pytest_reinplace.passes.memory._torch import statically_known
from pytest_reinplace.passes.memory.geometry import Geometry
from pytest_reinplace.passes.memory.region import Region

SIZES = st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12, 16, 24])), max_size=3)


@st.composite
def regions(draw: st.DrawFn) -> Region:
    axes = draw(SIZES)
    item = draw(st.sampled_from([1, 2, 4]))
    return Region(draw(st.integers(0, 40)), tuple(n for n, _ in axes), tuple(s for _, s in axes), item)


def bytes_of(region: Region) -> set[int]:
    found = {region.offset}
    for size, stride in zip(region.sizes, region.strides, strict=True):
        found = {b + i * stride for b in found for i in range(size)}
    return {b + i for b in found for i in range(region.itemsize)}


@settings(max_examples=1500, deadline=None)
@given(regions(), regions())
def test_overlap_and_containment(a: Region, b: Region) -> None:
    geometry, x, y = Geometry(), bytes_of(a), bytes_of(b)
    assert geometry.overlap(a, b) is bool(x & y)
    if geometry.contains(a, b):
        assert y <= x
    elements = a.itemsize
    for size in a.sizes:
        elements *= size
    if not geometry.self_overlapping(a):
        assert len(x) == elements


def test_containment_is_found_where_views_make_it() -> None:
    base = torch.empty(6, 8)
    geometry = Geometry()
    whole, block = Region.of(base), Region.of(base[1:4, 2:6])
    assert geometry.contains(whole, block)
    assert geometry.contains(block, Region.of(base[2, 3:5]))
    assert geometry.contains(Region.of(base[:, 1]), Region.of(base[::2, 1]))
    assert not geometry.contains(block, whole)
    columns = torch.empty(6, 4).t()
    assert geometry.contains(Region.of(columns[1:]), Region.of(columns[1::2]))
    assert not geometry.contains(Region.of(columns[1:3]), Region.of(columns[1::2]))
    assert not geometry.contains(block, Region.of(base[2, 3:7]))


def test_views_that_bounding_intervals_confuse() -> None:
    base = torch.empty(8, 8)
    geometry = Geometry()
    apart = [
        (base[:, :4], base[:, 4:]),
        (base[::2], base[1::2]),
        (base[:, 0], base[:, 1]),
        (base.diagonal(), base.diagonal(1)),
        (base.t()[:4], base.t()[4:]),
    ]
    for x, y in apart:
        assert geometry.overlap(Region.of(x), Region.of(y)) is False
    # equal row strides, the second starts in a later row: torch's own test calls these disjoint
    assert geometry.overlap(Region.of(base), Region.of(base[2:, :2])) is True
    assert geometry.overlap(Region.of(base), Region.of(base.view(torch.int8)[3:4, 5:6])) is True


def test_adversarial_strides_give_up_soon() -> None:
    odd = (10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079)
    a = Region(0, (50,) * 8, odd, 1)
    b = Region(3, (50,) * 8, tuple(s + 2 for s in odd), 1)
    assert Geometry().overlap(a, b) in (True, None)


def test_symbolic_halves_and_columns() -> None:
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    context = StatelessSymbolicContext(
        dynamic_sizes=[DimDynamic.STATIC, DimDynamic.DYNAMIC, DimDynamic.STATIC]
    )
    pools = mode.from_tensor(torch.empty(2, 7, 24), symbolic_context=context, static_shapes=False)
    geometry = Geometry(env)
    with mode:
        first, second = Region.of(pools[0]), Region.of(pools[1])
        left, right = Region.of(pools[:, :, :8]), Region.of(pools[:, :, 8:])
        some, more = Region.of(pools[0, :, :8]), Region.of(pools[0, :, 4:12])
    assert geometry.overlap(first, second) is False
    assert geometry.overlap(left, right) is False
    assert geometry.overlap(some, more) is None  # not decided: counts as overlapping
    assert geometry.contains(Region.of(pools), second)
    assert not env.guards


@pytest.mark.parametrize("itemsize", [1, 4])
def test_the_first_and_the_last_column_of_many(itemsize: int) -> None:
    """``x[:, -1] = x[:, 0]``, in items as Inductor counts, and in bytes."""
    env = ShapeEnv()
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.DYNAMIC])
    mode = FakeTensorMode(shape_env=env)
    table = mode.from_tensor(torch.empty(6, 5), symbolic_context=context, static_shapes=False)
    rows, columns = (sympy.sympify(size.node.expr) for size in table.shape)

    def column(at: Any) -> Region:
        return Region(at * itemsize, (rows,), (columns * itemsize,), itemsize)

    geometry = Geometry(env)
    assert geometry.overlap(column(0), column(columns - 1)) is False  # of no symbol is it known to be 1
    assert geometry.overlap(column(1), column(columns - 1)) is None  # two columns may be all
    assert geometry.overlap(column(0), column(columns)) is None  # the first one of the next row
    assert not env.guards


@pytest.mark.parametrize("is_even", [True, False])
def test_a_whole_and_its_halves_are_the_same_bytes_only_where_nothing_is_left_over(is_even: bool) -> None:
    env = ShapeEnv()
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.DYNAMIC])
    mode = FakeTensorMode(shape_env=env)
    whole = mode.from_tensor(torch.empty(6, 5), symbolic_context=context, static_shapes=False)
    rows, columns = whole.shape
    assert bool(rows % 2 == 0)  # a guard, which holds for all that the graph is called with
    rows = rows if is_even else rows + 1
    n, m, k = (sympy.sympify(size.node.expr) for size in (rows, columns, rows // 2))
    assert statically_known(env, sympy.Le(n * m, 2 * m * k)) is is_even
    assert statically_known(env, sympy.Eq(3 * n * m - 6 * m * k, 0)) is is_even
    assert not statically_known(env, sympy.Lt(n * m, 2 * m * k))
    assert not statically_known(env, sympy.Le(m, k))


def test_steps_whose_lengths_are_not_known_are_not_compared() -> None:
    row, other = sympy.symbols("row other", positive=True, integer=True)
    rows = Region(0, (4, 2), (row, 4), 4)
    assert Geometry().contains(rows, Region(0, (3, 2), (row, 4), 4))
    assert not Geometry().contains(rows, Region(0, (3, 2), (other, 4), 4))


def test_strides_count_where_there_is_an_element() -> None:
    n, m = sympy.symbols("n m", integer=True)
    geometry = Geometry()
    found = Region(0, (n, 2), (8, 8 * n), 8)
    assert geometry.same_layout(found, Region(0, (n, 2), (8, 8 * Max(1, n)), 8))
    assert not geometry.same_layout(found, Region(0, (n, 2), (8, 8 * Max(2, n)), 8))
    assert not geometry.same_layout(
        Region(0, (m, 2), (8, 8 * n), 8), Region(0, (m, 2), (8, 8 * Max(1, n)), 8)
    )
