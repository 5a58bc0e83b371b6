"""Copies that a program makes, compiled: what they hold, and that nothing shares memory with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.defects import DEFECTS
from pytest_reinplace.passes.oracle.call import called, differences
from pytest_reinplace.passes.oracle.setting import Setting

from ..trace import arange

Tensor = torch.Tensor
Program = Callable[..., list[Tensor]]
pytestmark = pytest.mark.usefixtures("quick")


def copied_then_written(target: Tensor, source: Tensor) -> list[Tensor]:
    """pytorch 198131: the target gets what the source held before."""
    target[0:, :] = source[0:, :]
    source.add_(1)
    return [source]


def part_copied_then_written(target: Tensor, source: Tensor) -> list[Tensor]:
    target.copy_(source.split(4)[0])
    source.t().mul_(5)
    return [source[1:]]


def copied_from_a_list(target: Tensor, source: Tensor) -> list[Tensor]:
    torch._foreach_copy_([target], [source.view_as(target)])
    source.copy_(target.t() * 2)
    return [source.sum()]


def written_then_copied(target: Tensor, source: Tensor) -> list[Tensor]:
    source.add_(1)
    target[0:, :] = source[0:, :]
    return [source]


def several_copies(x: Tensor, _: Tensor) -> list[Tensor]:
    new = x.sin()
    return [new.pow(1), new.clone(), torch.cat([new]), torch.slice_scatter(x, new)]


def copies_beside_a_view(x: Tensor, _: Tensor) -> list[Tensor]:
    new = x.cos()
    return [new, torch.cat([new.clone()]), new[1:]]


def several_views(x: Tensor, _: Tensor) -> list[Tensor]:
    new = x.sin()
    return [new.view(-1), new.t(), new[0:], x[1:]]


PROGRAMS = (
    *(copied_then_written, part_copied_then_written, copied_from_a_list, written_then_copied),
    *(several_copies, copies_beside_a_view, several_views),
)
IS_LATE = ".".join(torch.__version__.split(".")[:2]) in DEFECTS["late-epilogue"].seen


def wrong(program: Program, dtype: torch.dtype = torch.float32) -> list[str]:
    def inputs() -> list[Any]:
        return [torch.zeros(4, 4, dtype=dtype), arange(4, 4).to(dtype)]

    torch.compiler.reset()
    expected = called(program, inputs())
    compiled = torch.compile(program, fullgraph=True, options=inductor_options())
    return list(differences(expected, called(compiled, inputs())))


@pytest.mark.parametrize("program", PROGRAMS)
def test_they_are_kept_apart(program: Program) -> None:
    assert wrong(program) == []


def test_of_numbers_of_other_kinds_too() -> None:
    assert wrong(copied_then_written, torch.int32) == wrong(copied_then_written, torch.bfloat16) == []


TWINS = [
    (copied_then_written, IS_LATE),
    (written_then_copied, False),
    (several_copies, True),
    (several_views, False),
]


@pytest.mark.parametrize(("program", "is_wrong"), TWINS)
def test_without_us_some_are_not(program: Program, is_wrong: bool) -> None:
    """What is copied late, and copies that are dropped; their twins are right all the same."""
    with Setting(without=("late-epilogue", "merged-outputs")).in_force():
        assert bool(wrong(program)) is is_wrong
