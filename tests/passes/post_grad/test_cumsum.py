"""Sums of a constant are counted where counting gives them to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_reinplace import AssertGraph

from ..trace import arange, functional
from .stages import as_traced, by_inductor, by_rule
from .test_cat_of_split import targets

aten = torch.ops.aten
Tensor = torch.Tensor


def sums(value: Any, of: torch.dtype, shape: tuple[int, ...] = (4,), **kwargs: Any) -> Callable[..., Any]:
    dim = kwargs.pop("dim", -1)

    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.full(shape, value, dtype=of).cumsum(dim, **kwargs), x + 1

    return program


COUNTED = [
    sums(3, torch.int64),
    sums(2.7, torch.int64),
    sums(-2.7, torch.int32),
    sums(5, torch.bool),
    sums(-1, torch.uint8),
    sums(0, torch.int64),
    sums(True, torch.bool, dtype=torch.bfloat16),
    sums(1.0, torch.float32),
    sums(-3.0, torch.float16),
    sums(300, torch.int64, dtype=torch.int8),
    sums(100, torch.int8, (300,), dtype=torch.int8),
    sums(1, torch.int64, (2, 3, 4), dim=1),
    sums(1, torch.int64, (2, 3, 4), dim=-3),
    sums(1, torch.int64, (2, 0), dim=1),
    sums(0.1, torch.float32),
    sums(0.1, torch.float16, (3000,)),
    sums(-0.0, torch.float32),
    sums(float("inf"), torch.float32),
    sums(float("nan"), torch.float32),
    sums(1.0, torch.float16, (2049,)),
    sums(1, torch.int64, (300,), dtype=torch.bfloat16),
    sums(1e-7, torch.bfloat16, (2, 300)),
    sums(2.7, torch.float32, dtype=torch.int64),
    sums(1 << 40, torch.int64),
    sums((1 << 62) + 3, torch.int64, (9,)),
    sums(60000.0, torch.float16, (9,)),
]


@pytest.mark.parametrize("program", COUNTED, ids=map(str, range(len(COUNTED))))
def test_sums_are_counted(program: Callable[..., Any]) -> None:
    applied, gm = by_rule("cumsum", program, arange(3))
    assert len(applied.rewritten) == 1 and aten.cumsum.default not in targets(gm)
    result = gm.graph.output_node().args[0][0].meta["val"]  # type: ignore[index,union-attr]
    assert result.is_contiguous()
    assert by_inductor(program, arange(3)) == 0


LEFT = [
    (sums(3.0, torch.float32, ()), "nothing is added up"),
    (sums(0.1, torch.float64), "sums may be rounded"),
    (sums(0.1, torch.bfloat16, (1 << 18,)), "sums may be rounded"),
    (sums(float("nan"), torch.float16, dtype=torch.float32), "the constant has no exact value"),
    (sums((1 << 53) + 1, torch.int64, dtype=torch.float32), "the constant has no exact value"),
    (sums(1e30, torch.float32, dtype=torch.float16), "the constant has no exact value"),
    (sums(1j, torch.complex64), "the constant has no exact value"),
    (sums(300.0, torch.float32, dtype=torch.int8), "the constant does not fit into the sums"),
]


@pytest.mark.parametrize(("program", "reason"), LEFT, ids=map(str, range(len(LEFT))))
def test_other_sums_stay_and_are_hidden(program: Callable[..., Any], reason: str) -> None:
    applied, gm = by_rule("cumsum", program, arange(3))
    assert [r.reason for r in applied.refused] == [reason] and aten.cumsum.default in targets(gm)
    assert by_inductor(program, arange(3)) == 0


def test_what_is_counted_has_memory_of_its_own(assert_graph: AssertGraph) -> None:
    rows = sums(3, torch.int32, (2, 3), dim=-1, dtype=torch.float16)
    _, gm = by_rule("cumsum", rows, arange(3))
    assert_graph("rows", functional(rows, arange(3))[0], gm)


def written(x: Tensor) -> Tensor:
    constant = torch.ops.aten.full.default([4], 3, dtype=torch.int64, layout=torch.strided, pin_memory=False)
    constant.select(0, 0).fill_(5)
    return constant.cumsum(0)


def test_a_constant_that_is_written_is_none() -> None:
    """What hides it does not make the constant anew."""
    assert [r.reason for r in as_traced("cumsum", written, arange(3)).refused] == ["the constant is written"]


def of_a_length(x: Tensor) -> Tensor:
    return torch.full((x.shape[0],), 2, dtype=torch.int64).cumsum(0) + x.sum().long()


def of_a_size(x: Tensor) -> Tensor:
    return torch.full((3,), x.shape[0], dtype=torch.float32).cumsum(0) + x.sum()


def of_floats(number: float, dtype: torch.dtype) -> Callable[..., Any]:
    return lambda x: torch.full((x.shape[0],), number, dtype=dtype).cumsum(0) + x.sum()


def test_symbols_may_be_a_length_and_no_constant() -> None:
    """Sums of any length are exact where the number has few digits, or infinite before they are not."""
    for program in (
        of_a_length,
        of_floats(1.5, torch.float32),
        of_floats(-3.0, torch.float16),
        of_floats(-0.0, torch.bfloat16),
    ):
        applied, _ = by_rule("cumsum", program, arange(4), dynamic=True)
        assert applied.rewritten
    for program, reason in (
        (of_a_size, "the constant has no exact value"),
        (of_floats(0.1, torch.float32), "sums may be rounded"),
        (of_floats(0.1, torch.float16), "sums may be rounded"),
        (of_floats(1.0, torch.bfloat16), "sums may be rounded"),
    ):
        applied, _ = by_rule("cumsum", program, arange(4), dynamic=True)
        assert [r.reason for r in applied.refused] == [reason]
        assert by_inductor(program, arange(4), dynamic=True) == 0
