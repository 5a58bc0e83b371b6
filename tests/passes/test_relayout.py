"""Results that take their operand's place although their strides as written are others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pytest_reinplace.passes import Reason
from pytest_reinplace.passes.verify import copied_bytes

from .test_in_place_forms import ROWS, rewritten, targets

aten = torch.ops.aten


def columns() -> Tensor:
    """Every second column of a larger tensor: no result of an operator has these strides."""
    return torch.arange(48, dtype=torch.int64).view(6, 8)[:, ::2]


def plain() -> Tensor:
    return torch.arange(100, 124, dtype=torch.int64).view(6, 4)


def test_an_element_of_a_list_is_written_where_its_operand_lies() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        first, second = aten._foreach_add.Scalar([x, y], 3)
        x.copy_(first)
        return second.sum() + first[0].sum()

    report, gm = rewritten(program, columns(), plain())
    assert "aten::_foreach_add.self[0]" in report.reinplaced
    assert not any("copy_" in target for target in targets(gm))


def test_a_returned_element_keeps_its_strides() -> None:
    def program(x: Tensor) -> Tensor:
        (first,) = aten._foreach_add.Scalar([x], 3)
        x.copy_(first)
        return first

    report, gm = rewritten(program, columns())
    assert copied_bytes(gm) == 6 * 4 * 8 and not report.reinplaced


def halves(x: Tensor) -> Tensor:
    first, second = x.chunk(2)
    return first.sum() - second.sum()


def negated(x: Tensor) -> Tensor:
    return (-x).sum()


def scattered(x: Tensor) -> Tensor:
    return aten.slice_scatter.default(x, x.new_zeros(1, 4), 0, 2, 3).sum()


def joined(x: Tensor) -> Tensor:
    return x.reshape(24) * 2


@pytest.mark.parametrize("use", [halves, negated, scattered])
def test_who_works_with_any_strides_does_not_hold_it_back(use: Callable[[Tensor], Tensor]) -> None:
    def program(x: Tensor, rows: Tensor, y: Tensor) -> Tensor:
        new = aten.index_put.default(x, [rows], y)
        old = use(new)
        x.copy_(new)
        return old

    report, _ = rewritten(program, columns(), ROWS, plain()[:2])
    assert "aten::index_put.self" in report.reinplaced


def test_who_goes_by_the_strides_does() -> None:
    def program(x: Tensor, rows: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        new = aten.index_put.default(x, [rows], y)
        x.copy_(new)
        return aten.as_strided.default(new, [4], [5], 1) * 1, new.sum()

    report, _ = rewritten(program, columns(), ROWS, plain()[:2])
    outcome = next(o for o in report.outcomes if o.label == "aten::index_put.self")
    assert not outcome.reinplaced and outcome.reason is Reason.LAYOUT


def test_a_clone_of_a_result_that_stays_as_it_is_costs_nothing() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        result = aten.gcd.default(x, y).clone()
        x.copy_(y)
        return result

    report, gm = rewritten(program, columns(), plain())
    assert "aten.clone.default" not in targets(gm) and "aten::clone.self" in report.reinplaced


def test_what_is_copied_onto_itself_is_dropped() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        x.copy_(x.view(6, 4))
        return y + 1

    _, gm = rewritten(program, plain(), plain())
    assert not any("copy_" in target for target in targets(gm))


def test_what_is_copied_elsewhere_is_not() -> None:
    def program(x: Tensor) -> Tensor:
        x[:3].copy_(x[3:])
        return x + 1

    _, gm = rewritten(program, plain())
    assert any("copy_" in target for target in targets(gm))
