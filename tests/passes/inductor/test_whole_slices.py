"""What is stored into a slice of rows, which may be all of them."""

from __future__ import annotations

from unittest import mock

import pytest
import torch
from torch._inductor import config

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.schedule import attempts

from ..trace import arange, ops

Tensor = torch.Tensor


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
    """It is all rows for 2: Inductor takes a slice of all for the buffer itself."""
    torch.compiler.reset()
    expected, given = arange(8, 4), arange(8, 4)
    result = masked(expected, k)
    if why:
        monkeypatch.setattr(attempts, "why_functional", lambda: why)
    with mock.patch.object(attempts.log, "warning") as warned:
        actual = torch.compile(masked, dynamic=True, options=inductor_options())(given, k)
    assert torch.equal(actual, result) and torch.equal(given, expected)
    assert not warned.called


def all_rows_written(x: Tensor, y: Tensor) -> Tensor:
    ops.scale(x[1::2].view(torch.uint8)[0:4], torch.tensor([2], dtype=torch.uint8))
    return y + 1


@pytest.mark.usefixtures("quick")
def test_all_rows_of_a_copy_with_gaps_are_stored_into_the_copy() -> None:
    """Taken for the buffer itself, it lost its gaps, and a store at its strides ended behind its memory."""

    def overlapping() -> tuple[Tensor, Tensor]:
        s = arange(104).double()
        return s[4:52].view(8, 6), s[10:58].view(8, 6)

    torch.compiler.reset()
    expected, given = overlapping(), overlapping()
    result = all_rows_written(*expected)
    with config.patch(enable_auto_functionalized_v2=False):
        actual = torch.compile(all_rows_written, fullgraph=True, options=inductor_options())(*given)
    assert torch.equal(actual, result) and torch.equal(given[0], expected[0])
