"""A kernel that is given one tensor twice, to read and to write: eager mode lets it see what it writes."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from torch._guards import TracingContext, tracing
from torch._inductor.utils import fresh_inductor_cache
from torch.fx import Node

from pytest_reinplace.passes import Reason, inductor_options
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.stage import observe
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.facts.target import NODE_BY_NODE
from pytest_reinplace.passes.reinplacing.run import analyze_graph

from ..trace import arange, ops

aten = torch.ops.aten
Tensor = torch.Tensor
SCALE = ops.scale.default


def reasons(
    b: GraphBuilder, outputs: list[Node], target: Any = INDUCTOR, *, learns: bool | None = None
) -> set[Reason | None]:
    """Return why something is cloned in a program whose results need gradients or not, or in any graph."""
    gm, context = b.finished(outputs), TracingContext(None)
    if learns is not None:
        info = types.SimpleNamespace(
            requires_grad=learns, output_type=types.SimpleNamespace(name="non_alias")
        )
        context.fw_metadata = types.SimpleNamespace(output_info=[info], input_info=[])  # type: ignore[assignment]
        (output,) = gm.graph.find_nodes(op="output")
        output.meta["desc"] = [object()]
    with tracing(context):
        report = analyze_graph(gm.graph, Options(target=target))
    return {o.reason for o in report.outcomes if not o.reinplaced}


def written(b: GraphBuilder, into: Node, read: Node, base: Node | None = None, *, v1: bool = False) -> Node:
    """Write the view ``into`` of a base in place of what is read."""
    if v1:
        return b.v1(SCALE, x=into, by=read)[-1]
    return b.v2(SCALE, {"x": (base or into, into)}, by=read)[-1]


@pytest.mark.parametrize("v1", [True, False])
def test_an_input_that_is_passed_twice_is_written(v1: bool) -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(4))
    once = written(b, x, x, v1=v1)
    twice = written(b, once, once, v1=v1)
    b.call(aten.copy_.default, x, twice)
    assert reasons(b, [b.call(aten.sum.default, twice)], learns=True) == set()


def test_node_by_node_the_old_value_is_read() -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(4))
    b.call(aten.copy_.default, x, written(b, x, x))
    assert reasons(b, [], NODE_BY_NODE) == {Reason.SAME_NODE}


@pytest.mark.parametrize(("begin", "kept"), [(0, set()), (1, {Reason.SAME_NODE})])
def test_a_part_is_one_tensor_with_the_same_part_alone(begin: int, kept: set[Reason]) -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(8))
    part, other = (b.call(aten.slice.Tensor, x, 0, i, i + 4) for i in (0, begin))
    new = written(b, part, other, x)
    b.call(aten.copy_.default, x, new)
    assert reasons(b, [], learns=True) == kept


@pytest.mark.parametrize(
    ("learns", "kept"), [(None, {Reason.SAME_NODE}), (True, {Reason.SAME_NODE}), (False, set())]
)
def test_equal_values_are_merged_for_a_backward(learns: bool | None, kept: set[Reason]) -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(4))
    y = b.call(aten.mul.Tensor, x, 2)
    assert reasons(b, [written(b, y, y)], learns=learns) == kept


def test_what_is_computed_from_an_input_is_another_tensor() -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(4))
    y = b.call(aten.add.Tensor, x, 1)
    b.call(aten.copy_.default, x, written(b, y, y))
    assert reasons(b, []) == {Reason.SAME_NODE}


def test_compiled_programs_do_what_they_do_in_eager_mode() -> None:
    """Those that are to learn have equal values merged, of which a kernel reads one and writes the other."""

    def program(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        ops.scale(x, x)
        y = x * 2
        if not w.requires_grad:
            ops.scale(y, y)
        one, other = x * 5, x * 5
        ops.scale(one, other)
        return y, one, other + 1, (w * w).sum()

    torch.compiler.reset()
    for learns in (True, False):
        labels: list[str] = []
        given = [arange(4), torch.ones(3, requires_grad=learns)]
        expected = [given[0].clone(), *program(given[0].clone(), given[1])]
        program(expected[0], given[1])
        with fresh_inductor_cache(), observe(lambda report, _, seen=labels: seen.extend(report.clones)):  # type: ignore[misc]
            found = torch.compile(program, fullgraph=True, options=inductor_options())(*given)
        for one, other in zip(expected, (given[0], *found), strict=True):
            assert torch.equal(one, other)
        assert bool(labels) is learns, labels
    torch.compiler.reset()
