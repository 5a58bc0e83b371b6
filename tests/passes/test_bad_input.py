"""Graphs that cannot be taken: the error says what was expected, what came, where, and what to do."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from pytest_reinplace.passes import (
    GraphError,
    ReinplaceError,
    ReinplacePass,
    RewriteError,
    analyze,
    reinplace,
)
from pytest_reinplace.passes.graph.emit import Emitter
from pytest_reinplace.passes.strategies import random_graph
from pytest_reinplace.passes.verify import assert_equivalent

from .trace import arange, functional, ops

entry_points = pytest.mark.parametrize("entry", [reinplace, analyze])


def update(cache: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    ops.scale(cache[1:], value)
    hidden = value * 2
    ops.scale(hidden, value)
    return hidden


def traced(*, v2: bool = True) -> tuple[GraphModule, list[Any]]:
    return functional(update, arange(3, 4), arange(2, 4), v2=v2)


def described(gm: GraphModule) -> list[tuple[str, str, str, list[str]]]:
    """Return all that must not change when an error is raised."""
    return [
        (node.name, str(node.target), f"{node.args} {node.kwargs}", sorted(node.meta))
        for node in gm.graph.nodes
    ]


def wrapper_of(gm: GraphModule) -> Node:
    return next(n for n in gm.graph.nodes if "auto_functionalized" in str(n.target))


@entry_points
@pytest.mark.parametrize("kind", ["placeholder", "operator", "wrapper"])
def test_a_missing_value(entry: Any, kind: str) -> None:
    gm, _ = traced()
    if kind == "placeholder":
        node = next(n for n in gm.graph.nodes if n.op == "placeholder")
    elif kind == "operator":
        node = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.mul.Tensor)
    else:
        node = wrapper_of(gm)
    del node.meta["val"]
    before = described(gm)
    with pytest.raises(GraphError) as caught:
        entry(gm)
    text = str(caught.value)
    assert 'expected meta["val"]' in text and node.name in text and "FakeTensorProp" in text
    if kind != "placeholder":
        assert "test_bad_input.py:" in text  # the user's line
    assert described(gm) == before


def test_values_are_needed_on_tensors_only() -> None:
    gm, inputs = traced()
    for node in gm.graph.nodes:
        if node.op == "output":
            node.meta.pop("val", None)
    specification, _ = traced()
    assert reinplace(gm).clones == []
    assert_equivalent(specification, gm, inputs)


@entry_points
def test_a_graph_that_was_reinplaced_already(entry: Any) -> None:
    gm, _ = traced()
    assert reinplace(gm).reinplaced
    before = described(gm)
    with pytest.raises(GraphError, match="expected a functional graph") as caught:
        entry(gm)
    assert "was the graph reinplaced already?" in str(caught.value)
    assert "reinplace_test::scale" in str(caught.value) and "test_bad_input.py:" in str(caught.value)
    assert described(gm) == before


@entry_points
def test_an_operator_in_place(entry: Any) -> None:
    gm, _ = traced()
    node = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.mul.Tensor)
    node.target = torch.ops.aten.mul_.Tensor
    before = described(gm)
    with pytest.raises(GraphError, match="expected a functional graph") as caught:
        entry(gm)
    assert "aten::mul_" in str(caught.value) and node.name in str(caught.value)
    assert described(gm) == before


@entry_points
def test_a_copy_into_something_else_than_an_input(entry: Any) -> None:
    gm, _ = traced()
    output = next(n for n in gm.graph.nodes if n.op == "output")
    with gm.graph.inserting_before(output):
        made = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.mul.Tensor)
        copy = gm.graph.call_function(torch.ops.aten.copy_.default, (made, made))
        copy.meta["val"] = made.meta["val"]
    with pytest.raises(GraphError, match="no mutation but copy_ into inputs"):
        entry(gm)


@entry_points
@pytest.mark.parametrize("wrong", [None, torch.nn.Linear(1, 1), "graph"])
def test_what_is_no_graph_module(entry: Any, wrong: Any) -> None:
    with pytest.raises(GraphError, match=r"expected a torch\.fx\.GraphModule, got"):
        entry(wrong)


def test_errors_are_of_one_family() -> None:
    assert issubclass(GraphError, ReinplaceError) and issubclass(RewriteError, ReinplaceError)


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("v2", [False, True])
def test_a_pass_that_raises_in_the_middle(monkeypatch: pytest.MonkeyPatch, v2: bool, at: int) -> None:
    """Whatever insertion fails, the graph is as before, and runs as before."""
    gm, inputs = traced(v2=v2)
    specification, _ = traced(v2=v2)
    before, calls, original, count = described(gm), [], Emitter.call, insertions(v2)

    def failing(self: Emitter, *args: Any, **kwargs: Any) -> Node:
        calls.append(args)
        if len(calls) == at + 1:
            raise KeyError("out of luck")
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Emitter, "call", failing)
    if at >= count:
        assert reinplace(gm).clones == []
        return
    with pytest.raises(RewriteError, match="KeyError: 'out of luck'; the graph is unchanged") as caught:
        reinplace(gm)
    assert "test_bad_input.py:" in str(caught.value) and isinstance(caught.value.__cause__, KeyError)
    assert described(gm) == before
    gm.graph.lint()
    assert_equivalent(specification, gm, inputs)
    monkeypatch.undo()
    assert reinplace(gm).clones == []  # and nothing stands against a second attempt
    assert_equivalent(specification, gm, inputs)


def insertions(v2: bool) -> int:
    """Return how many nodes a rewrite of the program inserts."""
    gm, _ = traced(v2=v2)
    old = {node.name for node in gm.graph.nodes}
    reinplace(gm)
    return len([n for n in gm.graph.nodes if n.name not in old])


def test_random_graphs_are_put_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    original, failed = Emitter.call, 0

    def last(self: Emitter, *args: Any, **kwargs: Any) -> Node:
        original(self, *args, **kwargs)
        raise RuntimeError("after the insertion")

    for seed in range(60):
        graph = random_graph(seed)
        gm = graph.copy()
        before = described(gm)
        with monkeypatch.context() as patch:
            patch.setattr(Emitter, "call", last)
            try:
                reinplace(gm)
            except RewriteError:
                failed += 1
                assert described(gm) == before
                assert_equivalent(graph.gm, gm, graph.inputs)
    assert failed > 30


def test_inside_inductor_a_bad_graph_is_left_functional(caplog: pytest.LogCaptureFixture) -> None:
    gm, inputs = traced()
    specification, _ = traced()
    mul = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.mul.Tensor)
    del mul.meta["val"]
    report = ReinplacePass().apply(gm.graph)
    assert not report.outcomes and 'expected meta["val"]' in caplog.text
    assert all(
        n.meta["only_clone_these_tensors"] for n in gm.graph.nodes if "auto_functionalized" in str(n.target)
    )
    gm.recompile()
    assert_equivalent(specification, gm, inputs)


def test_an_empty_graph_and_one_without_candidates() -> None:
    graph = Graph()
    graph.output(())
    assert reinplace(GraphModule({}, graph)).outcomes == ()
    gm, inputs = functional(lambda x: operator.add(x, 1), arange(3))
    assert reinplace(gm).outcomes == () and analyze(gm).outcomes == ()
    assert torch.equal(gm(*inputs)[0], arange(3) + 1)
