"""Copies whose source is a view of what is computed from the very buffer that is stored into."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import Report, inductor_options, observe
from pytest_reinplace.passes.verify import watching_schedules

from ..trace import arange
from .test_attempts import peak

Tensor = torch.Tensor


def turned_boxes(x: Tensor) -> None:
    x[:, 1:3] = x.flip(0)[:, 1:3]


def columns_moved(x: Tensor) -> None:
    x[:, 1:3] = (x * 2)[:, 0:2]


def rolled(x: Tensor) -> None:
    x[1:5] = torch.roll(x, 1, 0)[1:5]


def rows_mirrored(x: Tensor) -> None:
    x[2:4] = x.flip(0)[2:4].clone()


def doubled(x: Tensor) -> None:
    """Each element is read right before it is overwritten: nothing is to be put into memory."""
    x[:, 1:3] = (x * 2)[:, 1:3]


def rows_copied(x: Tensor) -> None:
    """A view of what is in memory is read from there."""
    x[0:2] = x[4:6]


PROGRAMS: dict[Callable[[Tensor], None], int] = {  # rows and columns that are put into memory
    turned_boxes: 16 * 2,
    columns_moved: 16 * 2,
    rolled: 4 * 16,
    rows_mirrored: 2 * 16,
    doubled: 0,
    rows_copied: 0,
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_it_stores_is_computed_before(program: Callable[[Tensor], None]) -> None:
    expected, given = arange(16, 16).float(), arange(16, 16).float()
    program(expected)
    found: list[str] = []
    reports: list[Report] = []
    torch.compiler.reset()
    with (
        fresh_inductor_cache(),
        watching_schedules(found.append),
        observe(lambda report, _: reports.append(report)),
    ):
        compiled = torch.compile(program, fullgraph=True, options=inductor_options())
        compiled(given)
        assert torch.equal(expected, given)
        assert found == [] and reports[0].clones == []
        assert peak(lambda: compiled(given)) == 4 * PROGRAMS[program]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("part", ["real", "imag"])
def test_what_complex_numbers_are_made_of_is_in_memory(part: str) -> None:
    """Their kernels are called with it: a clone would be a second copy."""

    def program(z: Tensor, x: Tensor) -> None:
        getattr(z, part).add_(x)

    z, x = torch.complex(arange(16, 16).float(), arange(16, 16).float() * 3), arange(16, 16).float()
    expected, given = z.clone(), z.clone()
    program(expected, x)
    torch.compiler.reset()
    with fresh_inductor_cache():
        compiled = torch.compile(program, fullgraph=True, options=inductor_options())
        compiled(given, x)
        assert torch.equal(expected, given)
        ours = peak(functools.partial(compiled, given, x))
        torch.compiler.reset()
        stock = torch.compile(program, fullgraph=True)
        stock(given, x)
        assert ours <= peak(functools.partial(stock, given, x))


def complex_boxes(z: Tensor) -> None:
    z[:, 1:3] = torch.view_as_complex(torch.view_as_real(z).flip(0))[:, 1:3]


def real_rows(z: Tensor) -> None:
    z[1:5] = z.real.flip(0)[1:5]


def parts_swapped(z: Tensor) -> None:
    z.real.copy_(z.imag.flip(0)[:])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("program", [complex_boxes, real_rows, parts_swapped])
def test_complex_values_are_read_before_they_are_overwritten(program: Callable[[Tensor], None]) -> None:
    z = torch.complex(arange(16, 16).float(), arange(16, 16).float() * 3)
    expected, given = z.clone(), z.clone()
    program(expected)
    torch.compiler.reset()
    with fresh_inductor_cache():
        torch.compile(program, fullgraph=True, options=inductor_options())(given)
    assert torch.equal(expected, given)
