"""Subgraphs that are run on slices: what they make of one begins where that does, and not as traced."""

from __future__ import annotations

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from pytest_reinplace.passes import Report, reinplace
from pytest_reinplace.passes._torch import hop
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import assert_equivalent

from ..nested import is_hidden, twin
from ..trace import arange

aten = torch.ops.aten


def bumped(b: GraphBuilder, x: Node, *, named: bool) -> Node:
    """Write a value, of which bytes are named by an offset, or all."""
    view = b.call(aten.as_strided.default, x, [2], [2], 0) if named else x
    new: Node = b.v2(adversary.operator("bump"), {"x": (x, view)})[-1]
    return new


def scanned(b: GraphBuilder, *, of_slice: bool = True, named_inside: bool = False) -> Node:
    """Scan over the rows of an input; returns the carry: made of the last row, or of the carry before it."""
    rows = b.placeholder(arange(3, 4))
    start = b.call(aten.neg.default, b.placeholder(arange(4)))
    inner = GraphBuilder(b.fake_mode)
    carry, row = (inner.operand(n.meta["val"]) for n in (start, b.call(aten.select.int, rows, 0, 0)))
    made = bumped(inner, row if of_slice else carry, named=named_inside)
    body = inner.finished([made, inner.call(aten.neg.default, made)])
    results = start.meta["val"], rows.meta["val"]
    call = b.called(
        hop("scan"), (b.subgraph(body), [start], [rows], ()), tuple(map(torch.empty_like, results))
    )
    return b.item(call, 0)


def carrying(b: GraphBuilder, *, named: bool) -> Node:
    """Scan over rows with two carries: what was made of the last row, and of bytes of the carry before it."""
    rows = b.placeholder(arange(3, 4))
    start, other = (b.call(aten.neg.default, b.placeholder(arange(4))) for _ in range(2))
    inner = GraphBuilder(b.fake_mode)
    values = start, other, b.call(aten.select.int, rows, 0, 0)
    carry, _, row = (inner.operand(n.meta["val"]) for n in values)
    made, seen = bumped(inner, row, named=False), bumped(inner, carry, named=named)
    body = inner.finished([made, seen, inner.call(aten.neg.default, seen)])
    results = start.meta["val"], other.meta["val"], rows.meta["val"]
    given = b.subgraph(body), [start, other], [rows], ()
    return b.item(b.called(hop("scan"), given, tuple(map(torch.empty_like, results))), 1)


def looping(b: GraphBuilder, value: Node, *, named: bool) -> GraphModule:
    """Loop while a sum of the value, or of bytes of it that are named by an offset, is small."""
    test, step = GraphBuilder(b.fake_mode), GraphBuilder(b.fake_mode)
    looked_at = test.operand(value.meta["val"])
    if named:
        looked_at = test.call(aten.as_strided.default, looked_at, [2], [2], 0)
    go_on = test.finished(test.call(aten.lt.Scalar, test.call(aten.sum.default, looked_at), 100))
    body = step.finished([step.call(aten.add.Tensor, step.operand(value.meta["val"]), 20)])
    given = b.subgraph(go_on), b.subgraph(body), [value], []
    return b.finished([b.item(b.called(hop("while_loop"), given, (torch.empty_like(value.meta["val"]),)), 0)])


def held(b: GraphBuilder, *outputs: Node) -> Report:
    gm = b.finished([*outputs])
    after = twin(gm)
    report = reinplace(after)
    assert_equivalent(gm, after, b.inputs)
    return report


@pytest.mark.parametrize("of_slice", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_bytes_of_a_carry_are_named_where_it_begins_as_told(of_slice: bool, named: bool) -> None:
    b = GraphBuilder()
    report = held(b, b.call(aten.neg.default, bumped(b, scanned(b, of_slice=of_slice), named=named)))
    outside = next(o for o in report.outcomes if o.label == "reinplace_adversary::bump.x" and not o.graph)
    assert outside.reinplaced is not (of_slice and named)


@pytest.mark.parametrize("of_slice", [True, False])
def test_bytes_of_a_slice_are_named_inside(of_slice: bool) -> None:
    b = GraphBuilder()
    gm = b.finished([b.call(aten.neg.default, scanned(b, of_slice=of_slice, named_inside=True))])
    after = twin(gm)
    reinplace(after)
    assert_equivalent(gm, after, b.inputs)
    assert is_hidden(gm.graph) is of_slice


@pytest.mark.parametrize("named", [True, False])
def test_a_carry_begins_where_a_slice_does_from_the_second_iteration_on(named: bool) -> None:
    b = GraphBuilder()
    gm = b.finished([b.call(aten.neg.default, carrying(b, named=named))])
    after = twin(gm)
    reinplace(after)
    assert_equivalent(gm, after, b.inputs)
    assert is_hidden(gm.graph) is named


@pytest.mark.parametrize("of_slice", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_bytes_are_named_where_a_loop_asks_whether_to_go_on(named: bool, of_slice: bool) -> None:
    b = GraphBuilder()
    gm = looping(b, scanned(b, of_slice=of_slice), named=named)
    after = twin(gm)
    reinplace(after)
    assert_equivalent(gm, after, b.inputs)
    assert is_hidden(gm.graph) is (named and of_slice)


def test_what_is_computed_from_a_carry_begins_where_the_graph_says() -> None:
    b = GraphBuilder()
    computed = b.call(aten.neg.default, scanned(b))
    report = held(b, b.call(aten.neg.default, bumped(b, computed, named=True)))
    (outside,) = (o for o in report.outcomes if o.label == "reinplace_adversary::bump.x" and not o.graph)
    assert outside.reinplaced


def test_a_subgraph_that_calls_itself_is_walked_once() -> None:
    inner = GraphBuilder()
    value = inner.operand(torch.empty(4))
    node = inner.subgraph(GraphModule({}, Graph()))
    target, given = torch.ops.higher_order.invoke_subgraph, (node, "itself", value)
    called = inner.called(target, given, (value.meta["val"],))
    gm = inner.finished([inner.item(called, 0)])
    setattr(gm, str(node.target), gm)
    assert not is_hidden(gm.graph)


def test_a_graph_that_names_nothing_or_runs_nothing_on_slices_is_not_walked() -> None:
    b = GraphBuilder()
    gm = b.finished([b.call(aten.neg.default, scanned(b))])
    assert not is_hidden(gm.graph)


def test_what_is_stacked_begins_where_the_graph_says() -> None:
    b = GraphBuilder()
    rows = b.placeholder(arange(3, 4))
    inner = GraphBuilder(b.fake_mode)
    row = inner.operand(rows.meta["val"][0])
    body = inner.finished([bumped(inner, row, named=False)])
    call = b.called(hop("map_impl"), (b.subgraph(body), [rows], []), (torch.empty_like(rows.meta["val"]),))
    report = held(b, b.call(aten.neg.default, bumped(b, b.item(call, 0), named=True)))
    assert any(o.reinplaced for o in report.outcomes if not o.graph)
