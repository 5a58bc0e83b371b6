"""Copies that a program needs are told so, with a list that assert_clones takes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.torch_version import TorchVersion

from pytest_reinplace.passes import Reason, declare
from pytest_reinplace.passes.reason import listing

from .followed import (
    BOTH,
    EIGHT,
    PLACE,
    SQUARE,
    both_,
    expected,
    follow,
    meant,
    ones,
    ran,
    scale_,
)


def second_buffer(x):
    y = x.clone()
    scale_(y, y)
    return y @ x.T


def second_buffer_of_a_temporary(x):
    x = x @ x
    y = x.clone()
    y[PLACE] = 1.0
    return y @ x.T


def both_returned(x):
    y = x @ x
    return y, y.index_put((PLACE,), ones(1, 4))


def three_buffers(x):
    y, z = x.clone(), x.clone()
    scale_(y, x)
    scale_(z, x)
    return (y @ x.T) + (z @ x.T)


@pytest.mark.parametrize(
    "program", [second_buffer, second_buffer_of_a_temporary, both_returned, three_buffers]
)
def test_a_copy_that_both_values_need_is_told_as_meant(program: Any) -> None:
    meant(program, SQUARE, BOTH, "inductor")


@pytest.mark.parametrize("program", [second_buffer, second_buffer_of_a_temporary, three_buffers])
def test_a_copy_that_the_program_makes_itself_is_told_as_meant(program: Any) -> None:
    meant(program, SQUARE, "the program copies it here and needs both: if that is meant, ", "exact")


def put(cache, value):
    return cache.index_put((PLACE,), value)


def put_back(cache, value):
    return cache.index_put_((PLACE,), value)


@pytest.mark.parametrize("under_test", ["inductor", "exact"])
def test_write_the_result_back_or_list_the_copy(under_test: str) -> None:
    inputs = torch.zeros(8), ones(1)
    says = f"{Reason.INPUT_KEPT.hint}; if the caller needs the old value, "
    hint = says + listing(["aten::index_put.self"])
    follow(put, put_back, inputs, hint, under_test, same_inputs=False)
    meant(put, inputs, says, under_test)


# Two equal values are one for torch before 2.15, also where an operator writes one of them.
MERGES = TorchVersion(torch.__version__) < (2, 15)
EQUALS = ones(8), ones(8, requires_grad=True)


def scaled_by_an_equal(x, weight):
    y, by = x + 1, x + 1
    scale_(y, by)
    return y * weight


def two_equals_written(x, weight):
    y, z = x + 1, x + 1
    both_(y, z)
    return z * weight


@pytest.mark.skipif(not MERGES, reason="torch 2.15 keeps them apart")
def test_declare_an_elementwise_operator() -> None:
    says = f"{Reason.SAME_NODE.hint}; if not, "
    meant(scaled_by_an_equal, EQUALS, says, "exact")
    with declare(scale_.default, elementwise=True):
        assert ran(scaled_by_an_equal, EQUALS, "exact").clones == ()


@pytest.mark.skipif(MERGES, reason="two values are one before torch 2.15")
@pytest.mark.parametrize("program", [scaled_by_an_equal, two_equals_written])
def test_of_two_equal_values_either_may_be_written(program: Any) -> None:
    assert ran(program, EQUALS, "exact").clones == ()


def put_rows_of_itself(x):
    y = x @ x
    return y.index_put((torch.arange(4),), y) @ x


@pytest.mark.parametrize(
    ("program", "inputs"),
    [
        pytest.param(
            two_equals_written,
            EQUALS,
            marks=pytest.mark.skipif(not MERGES, reason="torch 2.15 keeps them apart"),
        ),
        (put_rows_of_itself, SQUARE),
    ],
)
def test_a_call_that_needs_the_old_value_is_told_so(program: Any, inputs: Any) -> None:
    meant(program, inputs, "the call needs the old value while it writes: if that is meant, ", "exact")


def test_a_result_that_is_returned_although_its_input_is_written_again() -> None:
    def swap(cache, new, value):
        old = cache.index_put((PLACE,), value)
        cache.copy_(new)
        return old

    says = "the result is returned, and the input is written again: if that is meant, "
    meant(swap, (torch.zeros(8), ones(8), ones(1)), says, "exact")


def test_return_the_tensor_itself_or_list_the_copy() -> None:
    def step(cache, by):
        scale_(cache, by)
        return cache.clone()

    def changed(cache, by):
        scale_(cache, by)
        return cache

    says = f"{Reason.ESCAPES.hint}; if one is meant, "
    follow(step, changed, EIGHT, says + listing(["aten::clone.self"]), "exact")
    meant(step, EIGHT, says, "exact")


def test_a_listed_clone_that_is_there_several_times() -> None:
    assert expected("x: " + listing(["b", "a", "b"])) == ["a", "b", "b"]
    assert expected("x: " + listing(["a"])) == ["a"]
