"""Views of another dtype begin at some offsets only: a result that they look at stays at one of those."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from pytest_reinplace.passes import reinplace
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import assert_equivalent

aten = torch.ops.aten


def copied(start: int, *, viewed: bool = True) -> tuple[GraphModule, list[Any]]:
    """Copy a part of a tensor, and look at the copy as 64-bit integers."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(12, dtype=torch.int32))
    part = builder.call(aten.slice.Tensor, builder.call(aten.neg.default, x), 0, start, start + 4)
    copy = builder.call(aten.clone.default, part)
    seen = builder.call(aten.view.dtype, copy, torch.int64) if viewed else copy
    return builder.finished([builder.call(aten.neg.default, seen)]), builder.inputs


@pytest.mark.parametrize(("start", "viewed", "free"), [(3, True, False), (4, True, True), (3, False, True)])
def test_a_copy_that_a_view_needs_for_its_offset(start: int, viewed: bool, free: bool) -> None:
    gm, inputs = copied(start, viewed=viewed)
    reinplace(gm)
    assert (aten.clone.default not in [n.target for n in gm.graph.nodes]) is free
    assert_equivalent(copied(start, viewed=viewed)[0], gm, inputs)


@pytest.mark.parametrize("start", [2, 3, 4])
def test_a_wrapper_whose_copy_keeps_the_offset(start: int) -> None:
    """The functional wrapper's copy begins where its operand does; an explicit clone would not."""

    def make() -> tuple[GraphModule, list[Any]]:
        builder = GraphBuilder()
        x = builder.placeholder(torch.arange(12, dtype=torch.int32))
        part = builder.call(aten.slice.Tensor, x, 0, start, start + 5)
        new = builder.v1(adversary.operator("bump"), x=part)[-1]
        inner = builder.call(aten.slice.Tensor, new, 0, start % 2, start % 2 + 4)
        seen = builder.call(aten.view.dtype, inner, torch.int64)
        return builder.finished([builder.call(aten.neg.default, seen)]), builder.inputs

    gm, inputs = make()
    reinplace(gm)
    assert_equivalent(make()[0], gm, inputs)
