"""Operators over lists: computed with their neighbours where that is one kernel, in place elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_reinplace.passes import _torch, inductor_options
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.mend.stored_early import realize
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph

from ..trace import arange, ops

aten = torch.ops.aten
IN_INDUCTOR = Options(target=INDUCTOR)


def step(*, read: bool = False, chained: bool = True) -> GraphBuilder:
    """``p * 2 + g``, copied back into ``p``; ``read``: a product reads what is between the two."""
    b = GraphBuilder()
    p, g = b.placeholder(arange(4, 4)), b.placeholder(arange(4, 4) + 1)
    made = b.item(b.call(aten._foreach_mul.Scalar, [p], 2), 0)
    outputs = [b.call(aten.mm.default, made, g)] if read else []
    if chained:
        made = b.item(b.call(aten._foreach_add.List, [made], [g]), 0)
    b.call(aten.copy_.default, p, made)
    b.finished(outputs or [g])
    return b


def outcomes(b: GraphBuilder, options: Options) -> tuple[list[str], list[str], list[str]]:
    found = analyze_graph(b.graph, options)
    return found.reinplaced, found.clones, [o.label for o in found.outcomes if o.fused]


MUL, ADD = "aten::_foreach_mul.self[0]", "aten::_foreach_add.self[0]"


def test_a_chain_is_computed_in_one_kernel() -> None:
    assert outcomes(step(), IN_INDUCTOR)[1] == []
    report = analyze_graph(step().graph, IN_INDUCTOR)
    assert not any(o.reinplaced and not o.fused for o in report.outcomes)


def test_a_list_by_itself_is_written_in_place() -> None:
    assert outcomes(step(chained=False), IN_INDUCTOR) == ([MUL], [], [])


def test_what_is_in_memory_anyway_is_written_in_place() -> None:
    reinplaced, clones, fused = outcomes(step(read=True), IN_INDUCTOR)
    assert reinplaced == [MUL, ADD]
    assert (clones, fused) == ([], [])


def test_node_by_node_all_are_in_place() -> None:
    assert outcomes(step(), Options()) == ([MUL, ADD], [], [])


def test_long_lists_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    known = _torch.is_lowered_as_list
    monkeypatch.setattr(_torch, "is_lowered_as_list", lambda op: asked.append(op) or known(op))
    counts = []
    for width in (20, 200):
        b = GraphBuilder()
        given = [b.placeholder(arange(2)) for _ in range(width)]
        made = b.call(aten._foreach_mul.Scalar, given, 2)
        elements = [b.item(made, i) for i in range(width)]
        b.graph.call_function(ops.scale.default, (given[0], given[1]))
        after = b.call(aten._foreach_neg.default, elements)
        results = [b.item(after, i) for i in range(width)]
        b.finished([b.call(aten.sum.default, r) for r in results])
        asked.clear()
        analyze_graph(b.graph, IN_INDUCTOR)
        realize(b.graph)
        counts.append(len(asked))
    assert counts[1] < 15 * counts[0]  # ten times as long; a hundred where each asks for all


@torch.library.custom_op("list_cost::bump", mutates_args=("x",))
def bump(x: torch.Tensor) -> None:
    x.add_(100)


def old_values(x: torch.Tensor, w: torch.Tensor) -> Any:
    y = torch._foreach_mul(torch._foreach_add([x, w], 1.0), 2.0)
    bump(x)
    return torch._foreach_add(y, [w, w])


def half_precision(x: torch.Tensor, w: torch.Tensor) -> Any:
    y = torch.mm(x.bfloat16(), w.bfloat16())
    y.index_add_(0, torch.tensor([1, 3]), w[:2].bfloat16())
    return y.float()


@pytest.mark.parametrize("program", [old_values, half_precision])
def test_inductor_computes_what_eager_does(program: Callable[..., Any]) -> None:
    # Stock Inductor computes the first list after the write, and has a decomposition besides the kernel of
    # the second program's operator, which makes it refuse the in-place form.
    given = [arange(4, 4).float(), torch.eye(4)]
    expected = program(*(t.clone() for t in given))
    fast = torch.compile(program, fullgraph=True, options=inductor_options())
    torch.testing.assert_close(fast(*given), expected)


class Backward(torch.autograd.Function):
    """Its backward writes into a view that is not contiguous, by an operator that Inductor has to call."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        made = torch.mm(gradient, gradient)
        made[:, ::2].index_add_(0, torch.tensor([0, 1]), gradient[:2, :4])
        return made


def test_a_backward_graph_writes_into_views() -> None:
    given, weights = (torch.rand(8, 8, dtype=torch.bfloat16) for _ in range(2))
    gradients = []
    for options in (None, inductor_options()):
        x = given.clone().requires_grad_()
        fn: Any = Backward.apply
        fast = fn if options is None else torch.compile(lambda x: Backward.apply(x), options=options)
        fast(x).backward(weights)
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
