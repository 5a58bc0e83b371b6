"""Bounds of quotients and choices against the numbers, and what they tell about views of symbolic tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.utils._sympy.functions import FloorDiv, Max, Min

from pytest_reinplace.passes.memory.bounds import least_strides, upper_bounds
from pytest_reinplace.passes.memory.geometry import Geometry
from pytest_reinplace.passes.memory.region import Region, as_size

from .test_region import bytes_of

N, M = sympy.symbols("n m", integer=True, positive=True)
POINTS = [{N: n, M: m} for n, m in itertools.product(range(2, 7), repeat=2)]
PLAIN = st.sampled_from([N, M, N + 1, M - 1, N * M, sympy.Integer(3), N - M, 2 * N - 5])
ATOMS = st.one_of(
    st.builds(FloorDiv, PLAIN, st.sampled_from([sympy.Integer(2), sympy.Integer(3), N, M])),
    st.builds(Min, PLAIN, PLAIN),
    st.builds(Max, PLAIN, PLAIN),
    st.builds(lambda a: FloorDiv(N, FloorDiv(a, 2)), st.sampled_from([N, M])),
)
TERMS = st.lists(st.tuples(st.integers(-3, 3), PLAIN, ATOMS), min_size=1, max_size=3)


def holds(relation: Any) -> bool:
    """Return whether a relation holds at all points."""
    return all(bool(sympy.sympify(relation).subs(point)) for point in POINTS)


@settings(max_examples=100, deadline=None)
@given(TERMS, PLAIN, st.sampled_from([{}, {M: N + 1}, {N: FloorDiv(M, sympy.Integer(2))}]))
def test_what_is_at_most_zero_has_bounds_that_are(
    terms: list[tuple[int, Any, Any]], rest: Any, least: dict[Any, Any]
) -> None:
    size = sympy.expand(sum((c * factor * atom for c, factor, atom in terms), start=-rest))
    points = [point for point in POINTS if all(point[s] >= least[s].subs(point) for s in least)]
    for several in upper_bounds(size, holds, least):
        for point in points:
            if all(one.subs(point) <= 0 for one in several):
                assert size.subs(point) <= 0, (size, several, point)


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [
        ((4, 6), (9, 1), ["1 + (c - 1)"]),  # rows with gaps
        ((6, 4), (1, 9), ["1 + (r - 1)"]),
        ((4, 6), (5, 1), []),  # rows that overlap
        ((4, 1), (1, 9), []),
    ],
)
def test_rows_of_which_no_two_overlap(
    sizes: tuple[int, int], strides: tuple[int, int], expected: list[str]
) -> None:
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.DYNAMIC])
    real = torch.empty(200).as_strided(sizes, strides)
    fake = mode.from_tensor(real, symbolic_context=context, static_shapes=False)
    rows, columns = (as_size(n) for n in fake.shape)
    found = least_strides(fake, Geometry(env).hint)
    assert [sympy.expand(bound) for bound in found.values()] == [
        sympy.sympify(text, locals={"r": rows, "c": columns}) for text in expected
    ]


VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "even rows": lambda x: x[::2],
    "odd rows": lambda x: x[1::2],
    "even columns": lambda x: x[:, ::2],
    "every third": lambda x: x[:, 1::3],
    "first half": lambda x: x[: x.shape[0] // 2],
    "second half": lambda x: x[x.shape[0] // 2 :],
    "left half": lambda x: x[:, : x.shape[1] // 2],
    "all but one": lambda x: x[:-1],
    "turned": torch.t,
    "diagonal": lambda x: x.diagonal().unsqueeze(0),
    "pairs": lambda x: x.unfold(0, 2, 2)[:, :, 0],
    "overlapping pairs": lambda x: x.unfold(0, 2, 1)[:, 0],
}
CHAINS = st.lists(st.sampled_from(sorted(VIEWS)), max_size=3)


def made(x: torch.Tensor, chain: list[str]) -> torch.Tensor:
    for name in chain:
        x = VIEWS[name](x)
    return x


def can_be_made(x: torch.Tensor, chain: list[str]) -> bool:
    """Return whether there are rows enough for the pairs of a chain."""
    try:
        made(x, chain)
    except RuntimeError:
        return False
    return True


def symbolic(shape: tuple[int, int]) -> tuple[ShapeEnv, FakeTensorMode, torch.Tensor]:
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.DYNAMIC])
    return env, mode, mode.from_tensor(torch.empty(shape), symbolic_context=context, static_shapes=False)


@settings(max_examples=80, deadline=None)
@given(CHAINS, CHAINS)
def test_what_is_told_of_symbolic_views_is_so_of_each_size(first: list[str], second: list[str]) -> None:
    assume(all(can_be_made(torch.empty(9, 11), chain) for chain in (first, second)))
    env, mode, base = symbolic((9, 11))
    geometry = Geometry(env)
    with mode:
        a, b = (Region.of(made(base, chain)) for chain in (first, second))
    is_inside, meets = geometry.contains(a, b), geometry.overlap(a, b)
    is_folded = geometry.self_overlapping(a)
    for shape in itertools.product((2, 3, 4, 5, 8), repeat=2):
        concrete = torch.empty(shape)
        guarded = all(_allows(guard.expr, base, shape) for guard in env.guards)
        if not guarded or not all(can_be_made(concrete, chain) for chain in (first, second)):
            continue
        one, other = (made(concrete, chain) for chain in (first, second))
        x, y = (bytes_of(Region.of(t)) if t.numel() else set() for t in (one, other))
        assert not is_inside or y <= x
        assert meets is not False or not x & y
        assert is_folded or len(x) == one.numel() * one.itemsize


def _allows(guard: Any, base: torch.Tensor, shape: tuple[int, int]) -> bool:
    symbols = (size.node.expr for size in base.shape)  # type: ignore[attr-defined]
    return bool(guard.subs(dict(zip(symbols, shape, strict=True))))


@pytest.mark.parametrize("name", [n for n in VIEWS if n != "diagonal"])
def test_a_part_lies_in_the_whole(name: str) -> None:
    env, mode, base = symbolic((9, 11))
    with mode:
        part = Region.of(made(base, [name]))
    guards = list(env.guards)
    assert Geometry(env).contains(Region.of(base), part)
    assert env.guards == guards


def test_rows_that_are_taken_in_turns_do_not_meet_and_other_rows_may() -> None:
    env, mode, base = symbolic((9, 11))
    with mode:
        even, odd, third = (Region.of(x) for x in (base[::2], base[1::2], base[::3]))
    geometry = Geometry(env)
    assert geometry.overlap(even, odd) is False
    assert geometry.overlap(even, third) is not False
    assert not geometry.contains(even, third)


def test_odd_columns_of_odd_rows_are_none_of_even_rows() -> None:
    """They begin no whole number of rows and pairs of columns behind those: the rows are what is apart."""
    env, mode, base = symbolic((9, 11))
    with mode:
        odd = base[1::2, 1::2]
        others = [base[::2, ::2], base[::2, ::3], base[1::2], base[1::2, ::2], base[::3, ::2]]
    geometry = Geometry(env)
    found = [geometry.overlap(Region.of(odd), Region.of(other)) for other in others]
    assert found == [False, False, None, False, None]


def test_the_last_column_may_be_one_of_those_that_are_taken_in_turns() -> None:
    """A row ends with its last element, whichever column that is: of bytes, one byte less is one too few."""
    env, mode, base = symbolic((9, 11))
    with mode:
        columns = torch.empty(base.shape[0], 2 * base.shape[1], dtype=torch.uint8)
        cases = [(base[::2, ::2], base[::2, -1:]), (base[::2, ::3], base[::2, -1:])]
        cases += [(columns[::2, ::2], columns[::2, -2:-1]), (columns[::2, ::2], columns[::2, -1:])]
    geometry = Geometry(env)
    found = [geometry.overlap(Region.of(one), Region.of(other)) for one, other in cases]
    assert found == [None, None, None, False]


def test_of_sizes_that_only_data_tell_nothing_is_said() -> None:
    env, mode, base = symbolic((9, 11))
    with mode:
        columns: Any = env.create_unbacked_symint()
        torch._check(columns >= 0)
        fake = torch.empty_strided((base.shape[0], columns), (base.shape[1], 1))
    assert least_strides(fake, Geometry(env).hint) == {}


def test_windows_that_begin_at_each_row_are_all_of_these_rows() -> None:
    env, mode, base = symbolic((9, 11))
    with mode:
        windows = Region.of(base.unfold(0, 2, 1)[:, 0])
        regions = [Region.of(x) for x in (base[::2][1::2], base[:, 1])]
    geometry = Geometry(env)
    assert [geometry.overlap(region, windows) is not False for region in regions] == [True, False]


def test_sums_in_strides_are_written_out_or_not() -> None:
    """``(n + 5) * (4 * n)`` is the stride ``4 * n**2 + 20 * n``: all of it is one interval of bytes."""
    env, mode, base = symbolic((9, 11))
    with mode:
        whole = torch.empty(3, base.shape[0] + 5, base.shape[0])
        regions = [Region.of(x) for x in (whole, whole[1:], whole[:, :-1], whole.transpose(0, 1))]
    geometry = Geometry(env)
    assert [geometry.axes(region).dense for region in regions] == [True, True, False, True]
    assert all(geometry.contains(regions[0], region) for region in regions)
    assert not geometry.contains(regions[2], regions[0])


def test_pairs_of_neighbours_that_are_turned_do_not_overlap_themselves() -> None:
    """``x.view(n, -1, 2).permute(1, 0, 2)``: the number of pairs is a quotient, and so is a stride."""
    env, mode, base = symbolic((8, 12))
    with mode:
        pairs = base.view(base.shape[0], -1, 2).permute(1, 0, 2)
    assert not Geometry(env).self_overlapping(Region.of(pairs))
    assert math.prod(pairs.shape) == 96
