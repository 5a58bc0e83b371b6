"""Sizes that nodes of a graph give, and what is computed of them as nodes."""

from __future__ import annotations

import operator

import pytest
import torch
from torch.utils._sympy.functions import CleanDiv

from pytest_reinplace.passes.graph.sizes import given, is_named, shape_env_of, written_out
from pytest_reinplace.passes.memory.region import as_size

from ..trace import arange, functional


def traced() -> tuple[torch.fx.Graph, dict[str, torch.SymInt]]:
    gm, _ = functional(lambda x, k: (x * 2)[k:], arange(5, 4), 3, dynamic=True)
    sizes = [n.meta["val"] for n in gm.graph.nodes if n.op == "placeholder"]
    return gm.graph, {str(v): v for v in sizes if isinstance(v, torch.SymInt)}


def test_what_sizes_are_computed_by_is_written_out() -> None:
    graph, sizes = traced()
    a, b = list(sizes.values())[:2]
    output = next(n for n in graph.nodes if n.op == "output")
    least = torch.sym_min(a - 1, b) * 2 + torch.sym_max(a, 3)
    for value in (a * b - 3, a * a + 2 * b, -a, a, a + (a - b) // 2, least):
        node = written_out(output, as_size(value), given(graph))
        assert as_size(node.meta["val"]) == as_size(value)
    whole = CleanDiv(as_size(a * b), as_size(b) + 1)
    assert written_out(output, whole, given(graph)).target is operator.floordiv
    assert written_out(output, 7, given(graph)) == 7
    graph.lint()


@pytest.mark.parametrize("is_rest", [True, False])
def test_other_expressions_and_unknown_symbols_are_not(is_rest: bool) -> None:
    graph, sizes = traced()
    output = next(n for n in graph.nodes if n.op == "output")
    value = next(iter(sizes.values())) % 3 if is_rest else shape_env_of(graph).create_unbacked_symint()
    assert written_out(output, as_size(value), given(graph)) is None
    assert is_named(as_size(value), given(graph)) is is_rest


def test_a_graph_of_real_tensors_has_no_symbols() -> None:
    graph = torch.fx.Graph()
    graph.output((graph.placeholder("x"),))
    assert shape_env_of(graph) is None and given(graph) == {}
