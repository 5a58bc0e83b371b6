"""What is copied into a slice of all of a buffer, up to a symbol, is stored there."""

from __future__ import annotations

from unittest import mock

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.mend import whole_slices
from pytest_reinplace.passes.inductor.schedule import attempts

from ..trace import arange, ops

Tensor = torch.Tensor
aten = torch.ops.aten


def masked(x: Tensor, k: int) -> Tensor:
    ops.scale(x[1:3], x[1:3].clone())
    ops.scale(x[2:, 1:], x[2:, 1:].clone())
    x[6:8, 2:4][:k][x[6:8, 2:4][:k] > 11] = 8
    return x[1:, 1:]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("why", ["", "planted"])
@pytest.mark.parametrize("k", [2, 1])
def test_a_part_of_rows_of_its_own_is_masked(
    why: str, k: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is all rows for 2. In place the check of schedules found that, in copies nothing did."""
    torch.compiler.reset()
    expected, given = arange(8, 4), arange(8, 4)
    result = masked(expected, k)
    if why:
        monkeypatch.setattr(attempts, "why_functional", lambda: why)
    with mock.patch.object(attempts.log, "warning") as warned:
        actual = torch.compile(masked, dynamic=True, options=inductor_options())(given, k)
    assert torch.equal(actual, result) and torch.equal(given, expected)
    assert not warned.called


def test_a_slice_of_all_of_an_input_is_left() -> None:
    """An input may begin inside its storage, and a view by strides would count from where that begins."""

    def of_input(x: Tensor) -> Tensor:
        return aten.copy_.default(aten.slice.Tensor(x, 0, 0, 99), x * 2)

    def of_buffer(x: Tensor) -> Tensor:
        buffer = aten.empty_strided.default([4, 3], [1, 4])
        return aten.copy_.default(aten.slice.Tensor(buffer, 0, 0, 99), x)

    counts = {}
    for program in (of_input, of_buffer):
        gm = make_fx(program, tracing_mode="fake")(arange(4, 3))
        counts[program] = whole_slices.keep(gm.graph)
    assert counts == {of_input: 0, of_buffer: 1}
