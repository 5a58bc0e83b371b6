"""The quantizing operators: what their schemas say is what they do, and they compute the right thing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_reinplace.corpus.serving import quant_ops

DTYPES = [torch.int8, torch.float8_e4m3fn]
STEP = {torch.int8: 1 / 127, torch.float8_e4m3fn: 1 / 8}  # of the largest value, or of the value itself


@pytest.fixture(autouse=True)
def _registered() -> None:
    torch.manual_seed(0)
    quant_ops.register()


def op(name: str) -> Any:
    return getattr(torch.ops.serving_quant, name).default


def outputs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty(3, 8, dtype=dtype), torch.empty(3, 1)


def dequantized(result: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return result.float() * scale


@pytest.mark.parametrize("bound", [None, torch.tensor(1.0)], ids=["free", "bounded"])
def test_the_schemas_name_everything_that_is_written(bound: torch.Tensor | None) -> None:
    result, scale = outputs(torch.int8)
    x, weight, b = torch.randn(3, 8), torch.rand(8), torch.randint(-9, 9, (8, 4), dtype=torch.int8)
    product = (torch.empty(3, 4), torch.ones(3, 8, dtype=torch.int8), b, torch.rand(3, 1), torch.rand(1, 4))
    calls = [
        ("dynamic_per_token_quant", (result, x, scale, bound)),
        ("rms_norm_dynamic_per_token_quant", (result, x, weight, scale, 1e-5, bound, None)),
        ("rms_norm_dynamic_per_token_quant", (result, x, weight, scale, 1e-5, bound, torch.randn(3, 8))),
        ("scaled_mm", (*product, None)),
        ("scaled_mm", (*product, torch.randn(4))),
    ]
    for name, args in calls:
        torch.library.opcheck(op(name), args, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_comes_back_within_a_step(dtype: torch.dtype) -> None:
    result, scale = outputs(dtype)
    x = torch.randn(3, 8) * torch.tensor([[0.01], [1.0], [100.0]])
    op("dynamic_per_token_quant")(result, x, scale, None)
    peak = x.abs().amax(-1, keepdim=True)
    torch.testing.assert_close(scale * quant_ops.largest(dtype), peak)
    assert ((dequantized(result, scale) - x).abs() <= STEP[dtype] * peak).all()


def test_no_scale_is_above_its_bound() -> None:
    result, scale = outputs(torch.int8)
    op("dynamic_per_token_quant")(result, torch.full((3, 8), 5.0), scale, torch.tensor(1.0))
    torch.testing.assert_close(dequantized(result, scale), torch.ones(3, 8))


def test_the_norm_is_that_of_the_sum_which_the_residual_becomes() -> None:
    result, scale = outputs(torch.int8)
    x, residual, weight = torch.randn(3, 8), torch.randn(3, 8), torch.rand(8) + 0.5
    total = x + residual
    op("rms_norm_dynamic_per_token_quant")(result, x, weight, scale, 1e-5, None, residual)
    torch.testing.assert_close(residual, total)
    expected = torch.nn.functional.rms_norm(total, (8,), weight, 1e-5)
    torch.testing.assert_close(dequantized(result, scale), expected, rtol=0, atol=float(scale.max()))


def test_a_product_is_scaled_by_row_and_by_column() -> None:
    a, b = (torch.randint(-99, 99, shape, dtype=torch.int8) for shape in ((3, 8), (8, 4)))
    rows, columns, bias, out = torch.rand(3, 1), torch.rand(1, 4), torch.randn(4), torch.empty(3, 4)
    op("scaled_mm")(out, a, b, rows, columns, bias)
    torch.testing.assert_close(out, (a.float() * rows) @ (b.float() * columns) + bias)
