"""What values are views of, who uses them through views, and what calls write, in any graph."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.graph.alias import base_of, bases, chain, is_view, uses, viewed, written

from .trace import arange, ops

aten = torch.ops.aten


class Built:
    """A graph of ``x``, four rows of four."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.x = self.builder.placeholder(arange(4, 4))
        self.call = self.builder.call
        self.graph: Graph = self.builder.graph


def test_a_view_of_a_view_has_the_base_of_both() -> None:
    g = Built()
    row = g.call(aten.select.int, g.x, 0, 1)
    part = g.call(aten.slice.Tensor, row, 0, 1, 3)
    assert list(chain(part)) == [part, row, g.x]
    assert viewed(part) is row
    assert base_of(part) is g.x
    assert bases(g.graph)[part] is g.x


def test_one_of_several_views_is_a_view() -> None:
    g = Built()
    halves = g.call(aten.split.Tensor, g.x, 2)
    half = g.builder.item(halves, 1)
    assert list(chain(half)) == [half, halves, g.x]
    assert bases(g.graph)[half] is g.x


def test_one_of_several_results_is_none() -> None:
    g = Built()
    found = g.builder.item(g.call(aten.max.dim, g.x, 0), 0)
    assert not is_view(found)
    assert bases(g.graph)[found] is found


def test_what_is_written_and_returned_is_another_name() -> None:
    g = Built()
    row = g.call(aten.select.int, g.x, 0, 1)
    after = g.call(aten.mul_.Tensor, row, 2)
    part = g.call(aten.slice.Tensor, after, 0, 1, 3)
    assert not is_view(after)
    assert base_of(part) is g.x
    assert bases(g.graph)[part] is g.x


def test_uses_are_found_through_views_by_the_name_that_is_used() -> None:
    g = Built()
    row = g.call(aten.select.int, g.x, 0, 1)
    total = g.call(aten.sum.default, row)
    after = g.call(aten.mul_.Tensor, row, 2)
    last = g.call(aten.neg.default, after)
    assert set(uses(g.x)) == {(row, g.x), (total, row), (after, row), (last, after)}


def test_the_use_of_a_shape_is_no_way_to_another_tensor() -> None:
    g = Built()
    y = g.builder.placeholder(arange(16))
    shaped = g.call(aten.view_as.default, y, g.x)
    g.call(aten.neg.default, shaped)
    assert list(uses(g.x)) == [(shaped, g.x)]


def test_each_argument_that_is_written_counts() -> None:
    g = Built()
    y = g.builder.placeholder(arange(4, 4))
    some = g.graph.call_function(ops.some.default, ([g.x, y, g.x], None))
    assert written(some) == [g.x, y, g.x]
    assert written(g.call(aten.add.Tensor, g.x, y)) == []
    assert written(g.x) == []


def test_a_kernel_may_write_whatever_it_is_given() -> None:
    g = Built()
    launch = torch._higher_order_ops.triton_kernel_wrap.triton_kernel_wrapper_mutation
    node: Node = g.graph.call_function(launch, (), {"kernel_idx": 0, "kwargs": {"x": g.x, "n": 4}})
    assert written(node) == [g.x]
