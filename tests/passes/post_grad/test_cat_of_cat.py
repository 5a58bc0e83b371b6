"""A concatenation with a part of itself is one of more operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_reinplace import AssertGraph

from ..trace import arange, functional
from .stages import as_traced, by_inductor, by_rule

Tensor = torch.Tensor


def first_part(a: Tensor, b: Tensor) -> Tensor:
    whole = torch.cat([a, b], 1)
    return torch.cat([whole, whole[:, :2]], 1)


def negative(a: Tensor, b: Tensor) -> Tensor:
    whole = torch.cat([a, b], -1)
    return torch.cat([whole, whole[:, :2]], 1)


@pytest.mark.parametrize("program", [first_part, negative], ids=["first_part", "negative"])
def test_it_is_one_concatenation(program: Callable[..., Any], assert_graph: AssertGraph) -> None:
    args = arange(2, 3), arange(2, 2) + 50
    _, gm = by_rule("cat_of_cat", program, *args)
    assert_graph(program.__name__, functional(program, *args)[0], gm)
    assert by_inductor(program, *args) == 0


def test_the_dtype_is_that_of_the_whole(assert_graph: AssertGraph) -> None:
    _, gm = by_rule("cat_of_cat", first_part, arange(2, 3).int(), arange(2, 2))
    assert_graph.matches(gm, "{_}: float32[2, 7] = aten.cat.default([arg, arg_1, slice], 1)")


def beyond(a: Tensor, b: Tensor) -> Tensor:
    whole = torch.cat([a, b], 1)
    return torch.cat([whole, whole[:, :4]], 1)


def up_to_the_last(a: Tensor, b: Tensor) -> Tensor:
    whole = torch.cat([a, b], 1)
    return torch.cat([whole, whole[:, :-1]], 1)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (beyond, "the first part may be longer than the first operand"),
        (up_to_the_last, "how long the first part is is not known"),
    ],
)
def test_a_part_of_more_than_the_first_operand_stays(program: Callable[..., Any], reason: str) -> None:
    args = arange(2, 3), arange(2, 2) + 50
    applied, _ = by_rule("cat_of_cat", program, *args)
    assert [r.reason for r in applied.refused] == [reason]
    assert by_inductor(program, *args) == 0


@pytest.mark.parametrize("is_known", [True, False])
def test_symbols_are_compared_without_a_guard(is_known: bool) -> None:
    def program(a: Tensor, b: Tensor) -> Tensor:
        whole = torch.cat([a, b], 1)
        return torch.cat([whole, whole.narrow(1, 0, a.shape[1] if is_known else b.shape[1])], 1)

    args = arange(2, 5), arange(2, 4)
    applied, _ = by_rule("cat_of_cat", program, *args, dynamic=True)
    why = [] if is_known else ["the first part may be longer than the first operand"]
    assert len(applied.rewritten) == is_known and [r.reason for r in applied.refused] == why
    assert by_inductor(program, *args, dynamic=True) == 0


def empty_operand(a: Tensor, b: Tensor) -> Tensor:
    whole = torch.cat([a[0, :0], b], 1)
    return torch.cat([whole, whole.narrow(1, 0, 0)], 1)


def test_an_empty_operand_of_one_dimension_stays() -> None:
    applied = as_traced("cat_of_cat", empty_operand, arange(2, 3), arange(2, 3))
    assert [r.reason for r in applied.refused] == ["the first operand has other dimensions"]


def written_in_between(a: Tensor, b: Tensor) -> Tensor:
    whole = torch.cat([a, b], 1)
    a.zero_()
    return torch.cat([whole, whole.narrow(1, 0, 2)], 1)


def test_an_operand_that_is_written_in_between_stays() -> None:
    applied = as_traced("cat_of_cat", written_in_between, arange(2, 3), arange(2, 2) + 50)
    assert [r.reason for r in applied.refused] == ["an operand is written in between"]
