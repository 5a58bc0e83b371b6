"""The least bytes that a graph has to move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.picture import traffic

from .graphs import add_in_place, chain_of_scatters, functional_of, view_back, with_inputs

X = torch.ones(8)  # 32 bytes


def least(fn: Callable[..., Any], *args: Any, dynamic: bool = False) -> int:
    return traffic.least(make_fx(fn, tracing_mode="symbolic" if dynamic else "fake")(*args).graph)


@with_inputs(torch.ones(8), torch.tensor([1, 2]))
def bumped(x, index):
    """Write into an input, of which everything is read besides."""
    x[index] = 3.0
    return x.sum()


@with_inputs(torch.ones(4, 8), torch.ones(2))
def part_of_a_row(x, value):
    """Write into a view of a view of an input."""
    x[1][2:4] = value
    return value * 2


@with_inputs(torch.ones(8), torch.ones(8))
def scaled(x, y):
    """Write what was computed over an input."""
    x.mul_(y)


@with_inputs(torch.ones(8), torch.ones(4), torch.ones(2))
def twice(x, large, small):
    """Write into two parts of an input, then read all of it."""
    x[:4] = large
    x[5:7] = small
    return x.sum()


@with_inputs(torch.ones(2, 4), torch.ones(2), enable_auto_functionalized_v2=False)
def by_a_kernel(x, value):
    """Write into a row by an operator, then read all rows."""
    torch.ops.judgetest.write(x[1], value)
    return x.sum()


@with_inputs(torch.ones(8), torch.ones(8), torch.ones(1))
def from_another(x, y, one):
    """Write into an input what was written into another one, and what was not."""
    x[:1] = one
    y[:4] = x[4:]


@with_inputs(torch.ones(8), torch.ones(8), torch.ones(1))
def all_of_another(x, y, one):
    """Write all of an input into another one."""
    x[:1] = one
    y.copy_(x)


@with_inputs(torch.ones(8), torch.ones(1))
def into_a_fresh_one(x, one):
    """Write what an input holds now into a buffer of its own."""
    x[:1] = one
    y = torch.zeros(8)
    y[:4] = x[4:]
    return y


@pytest.mark.parametrize(
    ("program", "nbytes"),
    [
        # What is read of each input, then what is written.
        (chain_of_scatters, 64 + 8 + 64),
        (view_back, 16 + 16),  # an operator writes into the row: nobody knows how much
        (add_in_place, 16 + 4 + 16),  # two elements take the one value, which is all that must be written
        (bumped, 16 + (32 - 4) + 4 + 4),
        (part_of_a_row, 8 + 8 + 8),
        (scaled, 32 + 32 + 32),
        (twice, 16 + 8 + (32 - 24) + 16 + 4),
        (by_a_kernel, 8 + 4),
        (from_another, 4 + (16 - 4) + 4 + 16),
        (into_a_fresh_one, 4 + (16 - 4) + 4 + 32),
        (all_of_another, 4 + (32 - 4) + 4 + 32),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_graphs_of_programs_move(program: Callable[..., Any], nbytes: int) -> None:
    assert traffic.least(functional_of(program).graph) == nbytes


@pytest.mark.parametrize(
    ("fn", "args", "nbytes"),
    [
        (lambda x: (x * 2 + 1).sum(), (X,), 32 + 4),
        (lambda x: (x + 1, x * 2), (X,), 32 + 64),  # read once, whoever reads
        (lambda x: x[:2] + x[2:4], (X,), 8 + 8),  # a bound: at least what one of them reads
        (lambda x: x.view(2, 4), (X,), 0),
        (torch.zeros_like, (X,), 32),
        (lambda x: x.new_zeros(2), (X,), 8),
        (lambda x, i: x[i], (X, torch.tensor([1, 3])), 8 + 16 + 8),
        (lambda x, i: x[i], (X, torch.zeros(20, dtype=torch.int64)), 160 + 32 + 80),
        (lambda x: (x + 1, x[:2] * 2), (X,), 32 + 32 + 8),
        (lambda x: (y := x * 2, y[:2]), (X,), 32 + 32),
        (torch.ops.aten.uniform.default, (X,), 32),
        (torch.ops.aten.normal_functional.default, (X,), 32),
        (torch.ops.aten.bernoulli.p, (X, 0.5), 32),
        (torch.ops.aten.bernoulli.default, (X,), 32 + 32),
        (torch.ops.aten.copy.default, (X, X + 1), 32 + 32),
        (lambda x, i: x[i] + i, (X, torch.tensor([1, 3])), 8 + 16 + 8),
        (lambda x: x + 1, (torch.ones(1).expand(8),), 4 + 32),
        (lambda x: (x * 2).view(2, 4)[1], (X,), 32 + 16),
        (lambda x: x.sort()[0], (X,), 32 + 32),
    ],
)
def test_what_calls_move(fn: Callable[..., Any], args: tuple[Any, ...], nbytes: int) -> None:
    assert least(fn, *args) == nbytes


def test_who_asks_for_sizes_reads_nothing() -> None:
    assert least(lambda x: torch.arange(x.shape[0]), X, dynamic=True) == 64


def test_sizes_are_hinted() -> None:
    assert least(lambda x: x + 1, torch.ones(8, 3), dynamic=True) == 2 * 96


def test_a_subgraph_counts_where_it_is_called() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    with Capture("exact", "graph", bounded=True) as capture:
        torch.compile(program, fullgraph=True)(X)
    inner = [graph for graph in capture.graphs if graph.id.count(" ") > 1]
    assert inner
    assert [graph.least_bytes for graph in inner] == [0] * len(inner)
    assert sum(graph.least_bytes for graph in capture.graphs) == 32 + 32


def test_the_least_bytes_are_counted_where_they_are_asked_for() -> None:
    with Capture("exact", "graph") as capture:
        torch.compile(torch.sin)(X)
    assert [graph.least_bytes for graph in capture.graphs] == [0]


def test_what_cannot_be_counted_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def least(graph: torch.fx.Graph) -> int:
        raise ArithmeticError("no size")

    monkeypatch.setattr(traffic, "least", least)
    with Capture("exact", "graph", bounded=True), pytest.raises(Exception, match="no size"):
        torch.compile(torch.sin)(X)
