"""Graphs in which nothing could be in place are known by their calls: no model is built of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph, Node

from pytest_reinplace.passes import declare
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.kinds.kind import occurs_in
from pytest_reinplace.passes.reinplacing.run import analyze_graph
from pytest_reinplace.passes.strategies import random_graph

from ..trace import arange

aten: Any = torch.ops.aten
DENSE = {"memory_format": torch.contiguous_format}


def made(call: Callable[[GraphBuilder, Node], Node], *shape: int) -> Graph:
    b = GraphBuilder()
    x = b.call(aten.mul.Tensor, b.placeholder(arange(*shape)), 2)
    return b.finished([b.call(aten.sum.default, call(b, x))]).graph


def turned(b: GraphBuilder, x: Node) -> Node:
    return b.call(aten.permute.default, x, [1, 0])


NONE: dict[str, Any] = {
    "pointwise": lambda b, x: b.call(aten.add.Tensor, x, 1),
    "view": turned,
    "part of several": lambda b, x: b.item(b.call(aten.split.Tensor, x, 2), 0),
    "conversion": lambda b, x: b.call(aten.clone.default, turned(b, x), **DENSE),
    "scan of what is computed": lambda b, x: b.call(aten.cumsum.default, x, 0),
}
SOME: dict[str, Any] = {
    "clone": lambda b, x: b.call(aten.clone.default, x),
    "clone in another layout": lambda b, x: b.call(aten.clone.default, turned(b, x)),
    "clone in its layout": lambda b, x: b.call(aten.clone.default, x, **DENSE),
    "scatter": lambda b, x: b.call(aten.select_scatter.default, x, b.call(aten.select.int, x, 0, 1), 0, 0),
    "wrapper": lambda b, x: b.v1(adversary.operator("mix"), x=x, other=x)[-1],
}


@pytest.mark.parametrize("how", NONE)
def test_nothing_could_be_in_place(how: str) -> None:
    graph = made(NONE[how], 4, 3)
    assert not occurs_in(graph, INDUCTOR)
    assert not analyze_graph(graph, Options(target=INDUCTOR)).outcomes


@pytest.mark.parametrize("how", SOME)
def test_something_could_be_in_place(how: str) -> None:
    graph = made(SOME[how], 4, 3)
    assert occurs_in(graph, INDUCTOR)
    assert analyze_graph(graph, Options(target=INDUCTOR)).outcomes


def test_strides_of_single_elements_are_none() -> None:
    """A column is laid out as the copy that is asked for, but for the stride of its only dimension of one."""
    graph = made(lambda b, x: b.call(aten.clone.default, turned(b, x), **DENSE), 1, 3)
    assert occurs_in(graph, INDUCTOR)


def test_a_scan_of_an_input_could_be_in_place() -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(4, 3))
    b.call(aten.copy_.default, x, b.call(aten.cumsum.default, x, 0))
    graph = b.finished([]).graph
    assert occurs_in(graph, INDUCTOR)
    assert len(analyze_graph(graph, Options(target=INDUCTOR)).outcomes) == 1


def test_what_writes_is_no_functional_graph() -> None:
    """Who builds a model is told so."""
    assert occurs_in(made(lambda b, x: b.call(aten.add_.Tensor, x, 1), 4, 3), INDUCTOR)


def test_what_is_declared_to_write() -> None:
    graph = made(lambda b, x: b.call(aten.neg.default, x), 4, 3)
    assert not occurs_in(graph, INDUCTOR)
    with declare(aten.neg.default, writes=["self"]):
        assert occurs_in(graph, INDUCTOR)


def test_random_graphs() -> None:
    graphs = [random_graph(seed, wild=seed % 2 > 0).gm.graph for seed in range(40)]
    without = [graph for graph in graphs if not occurs_in(graph, INDUCTOR)]
    assert 0 < len(without) < 5
    assert not any(analyze_graph(graph, Options(target=INDUCTOR)).outcomes for graph in without)
