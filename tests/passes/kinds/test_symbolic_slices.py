"""View scatters between symbols: their bounds say which bytes they write."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pytest_reinplace.passes import reinplace
from pytest_reinplace.passes.reinplacing.kinds.view_scatter import bytes_written
from pytest_reinplace.passes.reinplacing.model.build import build
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange, functional


def halves(x: Tensor) -> None:
    n = x.shape[0] // 2
    x[:n] = x[n:]


def columns_of_rows(x: Tensor) -> None:
    x[::2, 1::3] = x[1::2, ::3]


def last_from_first(x: Tensor) -> None:
    n = x.shape[0] // 4
    x[-n:] = x[:n]


def all_but_the_last(x: Tensor) -> None:
    n = x.shape[0] // 2
    x[:-n] = x[n:]


PROGRAMS = [(halves, 0), (columns_of_rows, 0), (last_from_first, 0), (all_but_the_last, 1)]


@pytest.mark.parametrize(("program", "clones"), PROGRAMS)
def test_what_is_beside_the_slice_may_be_read_while_it_is_written(
    program: Callable[[Tensor], None], clones: int
) -> None:
    """The source has as many rows by guards alone; of an odd number all but half are more than half."""
    gm, inputs = functional(program, arange(8, 9), dynamic=True)
    for node in gm.graph.find_nodes(op="call_function", target=torch.ops.aten.copy.default):
        node.replace_all_uses_with(node.args[1])  # a view of the input itself is stored, as Inductor does
    gm.recompile()
    rewritten = copy.copy(gm)
    rewritten.graph = copy.deepcopy(gm.graph)
    assert len(reinplace(rewritten, order="keep").clones) == clones
    assert_equivalent(gm, rewritten, inputs)


def between(x: Tensor, y: Tensor) -> None:
    x[y.shape[0] : y.shape[1]] = 7


def until(x: Tensor, y: Tensor) -> None:
    x[: y.shape[0]] = 7


def behind(x: Tensor, y: Tensor) -> None:
    x[y.shape[0] :] = 7


def every_other_until(x: Tensor, y: Tensor) -> None:
    x[1 : y.shape[0] : 2] = 7


def last(x: Tensor, y: Tensor) -> None:
    x[-y.shape[0] :] = 7


def last_of_the_first(x: Tensor, y: Tensor) -> None:
    x[-y.shape[0] : -2] = 7


def one_from_the_end(x: Tensor, y: Tensor) -> None:
    x[-y.shape[1]] = 7


SLICES = [between, until, behind, every_other_until, last, last_of_the_first]
ROWS = [(2, 5), (5, 2), (12, 15), (5, 12)]
TOLD = pytest.mark.skipif(torch.__version__ < "2.13", reason="2.11 takes n - 1 < s for no bound of n <= s")
CASES = [*itertools.product(SLICES, ROWS), pytest.param(one_from_the_end, (2, 5), marks=TOLD)]


@pytest.mark.parametrize(("program", "rows"), CASES)
def test_the_bytes_of_a_slice(program: Callable[[Tensor, Tensor], None], rows: tuple[int, int]) -> None:
    gm, _ = functional(program, arange(8, 3), arange(*rows), dynamic=True)
    model = build(gm.graph)
    x, filled, hint = torch.zeros(8, 3), torch.zeros(24), model.geometry.hint
    program(x, torch.zeros(rows))
    for candidate in model.candidates:
        written = bytes_written(model, candidate.node, candidate.operand)
        if written is None:  # torch clamps a bound, and all may be written
            assert rows[0] > 8
            return
        sizes, steps = [hint(n) for n in written.sizes], [hint(n) // 4 for n in written.strides]
        filled.as_strided(sizes, steps, hint(written.offset) // 4).fill_(7)
    assert torch.equal(filled.view(8, 3), x)


def box(x: Tensor, y: Tensor, z: Tensor) -> None:
    x[y.shape[0] : y.shape[1], z.shape[0] : z.shape[1]] = 7


def every_other_of_the_rows(x: Tensor, y: Tensor, z: Tensor) -> None:
    x[y.shape[0] : y.shape[1]][:, : z.shape[1] : 2] = 7


def box_of_transposed(x: Tensor, y: Tensor, z: Tensor) -> None:
    x.t()[z.shape[0] : z.shape[1], y.shape[0] : y.shape[1]] = x.t()[z.shape[0] : z.shape[1], :1]


def rows_are_read(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    rows = x[y.shape[0] : y.shape[1]]
    before = rows * 2
    x[y.shape[0] : y.shape[1], z.shape[0] : z.shape[1]] = 7
    return before + rows


def rows_are_kept(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    rows = x[y.shape[0] : y.shape[1]].clone()
    x[y.shape[0] : y.shape[1], z.shape[0] : z.shape[1]] = 7
    return rows


@pytest.mark.parametrize(
    ("program", "clones"),
    [(box, 0), (every_other_of_the_rows, 0), (box_of_transposed, 0), (rows_are_read, 0), (rows_are_kept, 1)],
)
def test_a_part_of_a_part_is_a_part(program: Callable[..., object], clones: int) -> None:
    """No symbol says whether ``x[a:b]`` ends no later than ``x`` does; that it is a part of it is certain."""
    inputs = [arange(12, 14), arange(2, 9), arange(3, 11)]
    gm, given = functional(program, *inputs, dynamic=True)
    rewritten = copy.copy(gm)
    rewritten.graph = copy.deepcopy(gm.graph)
    assert len(reinplace(rewritten, order="keep").clones) == clones
    assert_equivalent(gm, rewritten, given)


@pytest.mark.parametrize(
    ("view", "is_apart"),
    [
        (lambda x, y: x[y.shape[0] : y.shape[1]], True),
        (lambda x, y: x[y.shape[0] : y.shape[1]].t().unsqueeze(0), True),
        (lambda x, y: x.unfold(0, y.shape[1], 1), False),
        (lambda x, y: x.as_strided((y.shape[1], 2), (1, 1)), False),
        (lambda x, y: x[:1].expand(y.shape[1], -1), False),
        (lambda x, y: x[:1].expand(y.shape[1], -1)[y.shape[0] :], False),
    ],
)
def test_a_part_overlaps_itself_where_it_shows_elements_twice(
    view: Callable[[Tensor, Tensor], Tensor], is_apart: bool
) -> None:
    gm, _ = functional(lambda x, y: view(x, y).sin(), arange(12, 14), arange(2, 9), dynamic=True)
    model = build(gm.graph)
    (last,) = gm.graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default)
    place = model.place(last.args[0])
    assert place is not None
    assert model.geometry.self_overlapping(place.region) is not is_apart
