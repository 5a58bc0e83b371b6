"""Windows over a buffer are a view of it to Inductor, whether they are read or written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor import config
from torch._inductor.utils import fresh_inductor_cache
from torch.utils._pytree import tree_leaves

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph

from ..trace import arange, functional, ops

Tensor = torch.Tensor


def averaged_and_shifted(x: Tensor, v: Tensor) -> Tensor:
    averages = x.unfold(1, 8, 4).mean(-1)
    x[:, :4] = 0
    return averages


def filtered_with_feedback(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    x[:, 3] = 7
    first = x.unfold(1, 8, 4).sum(-1)
    x[:, 5] = first[:, 0]
    second = x.unfold(1, 8, 4).sum(-1)
    x[:, 7] = second[:, 1]
    return first, second


def windows_that_are_read_after_a_store(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    windows = x.unfold(1, 8, 4)
    before = windows.sum(-1)
    x[:, 4] = 9
    after = windows.sum(-1)
    ops.scale(x[1:2], v)
    return before, after, windows * 3


def old_windows_beside_new_ones(x: Tensor, v: Tensor) -> Tensor:
    old = x.unfold(1, 8, 8) * 2
    x[2:5] = x[:3] * 2
    return old + x.unfold(1, 8, 8).flip(-1)


def windows_that_a_kernel_writes(x: Tensor, v: Tensor) -> Tensor:
    buffer = x + 1
    ops.scale(buffer.unfold(1, 8, 4)[:, 0], v[:8])
    buffer[:, 2] = 0
    return buffer


def windows_that_are_scaled(x: Tensor, v: Tensor) -> Tensor:
    windows = (x + 1).unfold(1, 8, 8)
    ops.scale(windows, v[:8])
    return windows * 3


def windows_of_a_column_major_buffer(x: Tensor, v: Tensor) -> Tensor:
    windows = (x + 1).t().contiguous().t().unfold(0, 4, 4)
    ops.scale(windows[1], v[0])
    return windows + 1


def windows_stored_by_index(x: Tensor, v: Tensor) -> Tensor:
    windows = (x @ x.t()).unfold(1, 8, 8)
    return torch.index_put(windows, (torch.tensor([1, 0]),), windows[:2] * 2) + 1


READ = (averaged_and_shifted, filtered_with_feedback, windows_that_are_read_after_a_store)
WRITTEN = (windows_that_are_scaled, windows_of_a_column_major_buffer, windows_stored_by_index)
RIGHT = (*READ, old_windows_beside_new_ones, windows_that_a_kernel_writes)


def given() -> tuple[Tensor, Tensor]:
    return arange(16, 64) % 23, arange(64) % 7


def compiled(program: Callable[..., Any], *, dynamic: bool = False) -> bool:
    """Return whether a program computes what it does in eager mode."""
    expected, actual = given(), given()
    result = program(*expected)
    torch.compiler.reset()
    with fresh_inductor_cache():
        found = torch.compile(program, fullgraph=True, dynamic=dynamic, options=inductor_options())(*actual)
    wanted, actual_all = tree_leaves((result, expected)), tree_leaves((found, actual))
    return all(map(torch.allclose, wanted, actual_all))


@pytest.mark.parametrize("program", READ)
def test_reading_windows_copies_nothing(program: Callable[..., Any]) -> None:
    graph = functional(program, *given())[0].graph
    assert analyze_graph(graph, Options(target=INDUCTOR)).clones == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("program", RIGHT)
def test_they_are_read_when_they_are_due(program: Callable[..., Any]) -> None:
    assert compiled(program)


@pytest.mark.parametrize("program", WRITTEN)
def test_writing_through_them_copies_nothing(program: Callable[..., Any]) -> None:
    graph = functional(program, *given(), v2=False)[
        0
    ].graph  # what such a wrapper is given is the view itself
    assert analyze_graph(graph, Options(target=INDUCTOR)).clones == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program", WRITTEN)
def test_what_is_written_through_them_is_written(program: Callable[..., Any], dynamic: bool) -> None:
    with config.patch(enable_auto_functionalized_v2=False):
        assert compiled(program, dynamic=dynamic)
