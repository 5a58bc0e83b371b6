"""Operators that name bytes by strides of their own, given a result that would be laid out anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ..kinds.test_in_place_forms import rewritten

aten = torch.ops.aten
Use = Callable[[Tensor, Tensor], Tensor]


def in_place(use: Use) -> bool:
    """Return whether every second column of a tensor is written where it lies although somebody uses it."""

    def program(x: Tensor, where: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        new = aten.index_put.default(x, [where], y)
        x.copy_(new)
        return use(new, y), new.sum()

    x = torch.arange(48, dtype=torch.int64).view(6, 8)[:, ::2]
    y = torch.arange(100, 108, dtype=torch.int64).view(2, 4)
    report, _ = rewritten(program, x, torch.tensor([1, 3]), y)
    return "aten::index_put.self" in report.reinplaced


@pytest.mark.parametrize("element", [0, 1])
def test_a_scatter_into_elements_that_are_named_copies_what_would_be_laid_out_anew(element: int) -> None:
    def program(x: Tensor, where: Tensor, y: Tensor) -> Tensor:
        new = aten.index_put.default(x, [where], y)
        part = aten.as_strided.default(new, [1], [2], element)
        whole = aten.as_strided_scatter.default(new, part * 3, [1], [2], element)
        x.copy_(whole)
        return y * 2

    report, _ = rewritten(program, torch.arange(12)[::2], torch.tensor([1, 0]), torch.tensor([100, 200]))
    assert report.clone_bytes > 0


USES: dict[str, Use] = {
    "the first element": lambda new, y: aten.as_strided.default(new, [1], [1], 0) * 1,
    "another element": lambda new, y: aten.as_strided.default(new, [1], [1], 5) * 1,
    "a scatter of the first element": lambda new, y: aten.as_strided_scatter.default(
        new, y[0, :1], [1], [1], 0
    ),
    "the beginning of the operand": lambda new, y: aten.as_strided.default(new, [1], [1]) * 1,
    "a copy": lambda new, y: aten.as_strided_copy.default(new, [4], [5], 1),
    "a reshape": lambda new, y: aten._reshape_alias.default(new, [24], [1]) * 1,
    "a reshaped copy": lambda new, y: aten._reshape_alias_copy.default(new, [24], [1]),
    "a scatter": lambda new, y: aten.as_strided_scatter.default(new, y[0], [4], [1], 4),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_is_named_by_strides_keeps_them(use: Use) -> None:
    assert not in_place(use)


@pytest.mark.parametrize("into", [True, False])
def test_a_scatter_by_strides_may_be_given_any_source(into: bool) -> None:
    def use(new: Tensor, y: Tensor) -> Tensor:
        if into:
            return aten.as_strided_scatter.default(new, y[0], [4], [1], 4)
        return aten.as_strided_scatter.default(y * 2, new[0], [4], [1], 4)

    assert in_place(use) is not into
