"""Returned views that are made anew are views of the input that their value is copied into."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache
from torch.fx import Node

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.mend.handed_back import hand_back
from pytest_reinplace.passes.verify import check

from ..trace import arange

aten = torch.ops.aten
Tensor = torch.Tensor
Program = Callable[[GraphBuilder, Node, Node], list[Node]]


def a_part(b: GraphBuilder, x: Node, value: Node) -> list[Node]:
    b.call(aten.copy_.default, x, value)
    return [b.call(aten.slice.Tensor, value, 0, 0, 2)]


def a_part_of_a_part(b: GraphBuilder, x: Node, value: Node) -> list[Node]:
    b.call(aten.copy_.default, x, value)
    rows = b.call(aten.slice.Tensor, value, 0, 1, 3)
    return [b.call(aten.permute.default, rows, [1, 0])]


def a_part_that_is_used(b: GraphBuilder, x: Node, value: Node) -> list[Node]:
    b.call(aten.copy_.default, x, value)
    rows = b.call(aten.slice.Tensor, value, 0, 1, 3)
    return [rows, b.call(aten.mul.Tensor, rows, 2)]


def a_part_before(b: GraphBuilder, x: Node, value: Node) -> list[Node]:
    rows = b.call(aten.slice.Tensor, value, 0, 1, 3)
    b.call(aten.copy_.default, x, value)
    return [rows]


def a_part_of_what_is_overwritten(b: GraphBuilder, x: Node, value: Node) -> list[Node]:
    b.call(aten.copy_.default, x, value)
    rows = b.call(aten.slice.Tensor, value, 0, 1, 3)
    b.call(aten.copy_.default, x, b.call(aten.add.Tensor, value, 1))
    return [rows]


def a_part_of_what_lies_otherwise(b: GraphBuilder, x: Node, value: Node) -> list[Node]:
    turned = b.call(aten.permute.default, value, [1, 0])
    b.call(aten.copy_.default, x, turned)
    return [b.call(aten.slice.Tensor, turned, 0, 0, 2)]


def a_part_of_another_dtype(b: GraphBuilder, x: Node, value: Node) -> list[Node]:
    wide = b.call(aten.add.Tensor, value, b.call(aten.full.default, [], 1, dtype=torch.float64))
    double = b.call(torch.ops.prims.convert_element_type.default, wide, torch.float64)
    b.call(aten.copy_.default, x, double)
    return [b.call(aten.slice.Tensor, double, 0, 0, 2)]


@pytest.mark.parametrize(
    ("program", "count"),
    [
        (a_part, 1),
        (a_part_of_a_part, 1),
        (a_part_that_is_used, 0),
        (a_part_before, 0),
        (a_part_of_what_is_overwritten, 0),
        (a_part_of_what_lies_otherwise, 0),
        (a_part_of_another_dtype, 0),
    ],
)
@pytest.mark.parametrize("is_made_anew", [True, False])
def test_what_is_handed_back(program: Program, count: int, is_made_anew: bool) -> None:
    b = GraphBuilder()
    x, y = b.placeholder(arange(4, 4)), b.placeholder(arange(4, 4) + 1)
    gm = b.finished(program(b, x, b.call(aten.mul.Tensor, x, y)))
    before = copy.deepcopy(gm)
    (output,) = gm.graph.find_nodes(op="output")
    leaves: Any = output.args[0]
    assert hand_back(gm.graph, leaves if is_made_anew else ()) == (count if is_made_anew else 0)
    gm.recompile()
    assert check(before, gm, b.inputs, regenerated=frozenset(range(len(leaves)))).status == "same"
    if count and is_made_anew:
        assert check(before, gm, b.inputs).status == "different"
        (view,) = [user for user in x.users if user.target is aten.slice.Tensor]
        assert view.meta["val"].untyped_storage()._cdata == x.meta["val"].untyped_storage()._cdata


def test_a_compiled_program_holds_what_it_was_given_once() -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x.div_(y).add_(1)
        y.copy_(x.t() * 2)
        return x[1:], y.t()[:2], x

    given, expected = ([arange(6, 4)[1:5], arange(4, 4) + 1] for _ in range(2))
    want = program(*expected)
    torch.compiler.reset()
    with fresh_inductor_cache():
        found = torch.compile(program, fullgraph=True, options=inductor_options())(*given)
    torch.compiler.reset()
    for one, other in zip((*want, *expected), (*found, *given), strict=True):
        torch.testing.assert_close(other, one)
    found[0].zero_()
    assert not given[0][1:].any() and found[2] is given[0]
