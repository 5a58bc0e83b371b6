"""What is returned beside a concatenation of it lies in memory of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph

from pytest_reinplace.passes.inductor.defects import undefended
from pytest_reinplace.passes.inductor.mend import concatenated

from ..trace import arange, functional

Tensor = torch.Tensor


def itself(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    part = x + 1
    return part, torch.cat([part, y])


def a_row(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    part = x + 1
    return part[:1], torch.cat([part.t(), y])


def twice(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    part = x + 1
    return part, torch.cat([part, y * 2, part])


def an_input(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x[:1], torch.cat([x, y])


def the_whole_alone(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return (torch.cat([x + 1, y]),)


def a_part_alone(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    part = x + 1
    return part, torch.cat([part, y]).sum(0)


def graph_of(program: Callable[..., Any]) -> Graph:
    return functional(program, arange(4, 4), arange(4, 4))[0].graph


@pytest.mark.parametrize(("program", "count"), [(itself, 1), (a_row, 1), (twice, 2)])
def test_copies_are_concatenated(program: Callable[..., Any], count: int) -> None:
    graph = graph_of(program)
    assert concatenated.keep_apart(graph) == count
    clones = graph.find_nodes(op="call_function", target=torch.ops.aten.clone.default)
    (whole,) = graph.find_nodes(op="call_function", target=torch.ops.aten.cat.default)
    assert len(clones) == count and set(clones) <= set(whole.args[0])
    assert all(clone.meta["val"].shape == (4, 4) for clone in clones)
    results = torch.fx.GraphModule(torch.nn.Module(), graph)(arange(4, 4), arange(4, 4))
    assert all(map(torch.equal, results, program(arange(4, 4), arange(4, 4))))


@pytest.mark.parametrize("program", [an_input, the_whole_alone, a_part_alone])
def test_others_stay(program: Callable[..., Any]) -> None:
    graph = graph_of(program)
    before = str(graph)
    assert concatenated.keep_apart(graph) == 0 and str(graph) == before


def test_it_can_be_switched_off() -> None:
    with undefended("returned-in-part"):
        assert concatenated.keep_apart(graph_of(itself)) == 0
