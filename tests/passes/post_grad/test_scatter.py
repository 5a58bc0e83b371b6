"""One index a row, stored into a constant: each element is chosen by its position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_reinplace.passes import post_grad
from pytest_reinplace.passes.inductor.stage import inductor_options
from pytest_reinplace.passes.ops.true_strides import has_usual_strides

from ..trace import arange, functional
from .stages import as_traced, by_rule
from .test_cat_of_split import targets

aten = torch.ops.aten
Tensor = torch.Tensor
INDEX = torch.tensor([[0], [3], [1]])


def chosen(index: Tensor) -> Tensor:
    return torch.full((3, 4), 0.1).scatter(1, index, 0.7)


def negative(index: Tensor) -> Tensor:
    return torch.full((3, 4), 0.1).scatter(-1, index, 0.7)


def by_columns(index: Tensor) -> Tensor:
    return torch.full((4, 3), 0.1).scatter(0, index.t(), 0.7)


def with_sizes(index: Tensor) -> Tensor:
    return torch.full((index.shape[0], index.shape[0] + 4), 2).scatter(1, index, -1)


def one_dimension(index: Tensor) -> Tensor:
    return torch.zeros(4).scatter(0, index[1], 1)


def turned(index: Tensor) -> Tensor:
    """The index lies in another order than what it is stored into."""
    wide = index.unsqueeze(2).expand(3, 1, 2).clone()
    return torch.zeros(3, 4, 2).scatter(1, torch.empty_strided((3, 1, 2), (1, 3, 3)).long().copy_(wide), 1)


@pytest.mark.parametrize(
    ("program", "dynamic"),
    [
        *((one, False) for one in (chosen, negative, by_columns, with_sizes, one_dimension, turned)),
        *((one, True) for one in (with_sizes, one_dimension)),
    ],
)
def test_each_element_is_chosen(program: Callable[..., Any], dynamic: bool) -> None:
    applied, gm = by_rule("scatter", program, INDEX, dynamic=dynamic)
    assert len(applied.rewritten) == 1 and aten.scatter.value not in targets(gm)
    assert has_usual_strides(next(n for n in gm.graph.nodes if n.target is aten.where.self).meta["val"])


@pytest.mark.parametrize(
    ("fill", "value", "dtype"),
    [
        (0.1, 0.7, torch.float64),
        (0.0, 2**60 + 1, torch.int64),
        (2.7, -3.9, torch.int32),
        (-1, 3, torch.uint8),
        (2.7, 0, torch.bool),
        (float("nan"), -0.0, torch.float16),
        (True, float("inf"), torch.bfloat16),
    ],
)
def test_both_numbers_are_what_the_dtype_holds(fill: float, value: float, dtype: torch.dtype) -> None:
    def program(index: Tensor) -> tuple[Tensor, Tensor]:
        made = torch.full((3, 4), fill, dtype=dtype).scatter(1, index, value)
        return made, torch.signbit(made)

    applied, gm = by_rule("scatter", program, INDEX)
    (where,) = gm.graph.find_nodes(op="call_function", target=aten.where.self)
    assert applied.rewritten and where.meta["val"].dtype == dtype


def two_a_row(index: Tensor) -> Tensor:
    return torch.zeros(3, 4).scatter(1, torch.cat([index, index], 1), 1)


def first_rows(index: Tensor) -> Tensor:
    return torch.zeros(3, 4).scatter(1, index[:2], 1)


def no_dimension(index: Tensor) -> Tensor:
    return torch.zeros(()).scatter(0, index[0, 0], 1)


def complex_numbers(index: Tensor) -> Tensor:
    return torch.zeros(3, 4, dtype=torch.complex64).scatter(1, index, 1j)


def empty_rows(index: Tensor) -> Tensor:
    return torch.zeros(0, 0).scatter(1, index[:0], 1)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (two_a_row, "not one index a row"),
        (first_rows, "it may leave rows out"),
        (no_dimension, "the index has other dimensions, or another dtype"),
        (complex_numbers, "what is stored is not known as the dtype holds it"),
        (empty_rows, "a row may be empty"),
    ],
)
def test_what_is_more_than_a_choice_stays(program: Callable[..., Any], reason: str) -> None:
    applied, _ = by_rule("scatter", program, INDEX)
    assert [r.reason for r in applied.refused] == [reason] and not applied.rewritten


def test_symbols_are_compared_without_a_guard() -> None:
    def program(index: Tensor, other: Tensor) -> Tensor:
        return torch.zeros(other.shape[0], 4).scatter(1, index, 1)

    applied, _ = by_rule("scatter", program, INDEX, arange(5, 2), dynamic=True)
    assert [r.reason for r in applied.refused] == ["it may leave rows out"]


def added(index: Tensor) -> Tensor:
    return torch.zeros(3, 4).scatter(1, index, 1, reduce="add")


def of_values(index: Tensor) -> Tensor:
    return torch.zeros(3, 4).scatter(1, index, arange(3, 4))


def into_no_constant(index: Tensor) -> Tensor:
    return arange(3, 4).scatter(1, index, 1)


@pytest.mark.parametrize("program", [added, of_values, into_no_constant])
def test_what_stores_no_number_into_a_constant_is_none_of_its_places(program: Callable[..., Any]) -> None:
    applied, _ = by_rule("scatter", program, INDEX)
    assert not applied.rewritten and not applied.refused


def written(index: Tensor) -> Tensor:
    constant = aten.full.default([3, 4], 0.5, dtype=torch.float32)
    aten.fill_.Scalar(constant[1], 9)
    return aten.scatter.value(constant, 1, index, 0.7)


def test_a_constant_that_is_written_is_not_known() -> None:
    applied = as_traced("scatter", written, INDEX)
    assert [r.reason for r in applied.refused] == ["the constant is written"]


def kept(index: Tensor) -> tuple[Tensor, Tensor]:
    constant = torch.full((3, 4), 0.1)
    return constant, constant.scatter(1, index, 0.7)


def test_the_result_shares_nothing_with_the_constant() -> None:
    applied, gm = by_rule("scatter", kept, INDEX)
    assert applied.rewritten and targets(gm).count(aten.full.default) == 3


@pytest.mark.parametrize("index", [torch.tensor([[0], [4], [1]]), torch.tensor([[0], [-1], [1]])])
def test_an_index_out_of_bounds_is_an_error_still(index: Tensor) -> None:
    gm, _ = functional(chosen, INDEX)
    assert post_grad.find("scatter").apply(gm).rewritten
    for run in (chosen, gm):
        with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
            run(index)


def of_float64(index: Tensor) -> Tensor:
    return torch.full((3, 4), 0.1, dtype=torch.float64).scatter(1, index, 0.3)


def test_inside_inductor_it_is_right_where_inductors_own_rounds() -> None:
    expected = of_float64(INDEX)
    torch.compiler.reset()
    theirs = torch.compile(of_float64, fullgraph=True)(INDEX)
    torch.compiler.reset()
    ours = torch.compile(of_float64, fullgraph=True, options=inductor_options(stage="post_grad"))
    assert torch.equal(ours(INDEX), expected) and torch.allclose(theirs.double(), expected)
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        ours(INDEX + 3)
