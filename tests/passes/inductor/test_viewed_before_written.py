"""Values that a kernel writes in strides of their own have them before a view is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache
from torch.fx import GraphModule

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.mend.stored_early import realize
from pytest_reinplace.passes.verify.execution import run

from ..trace import arange, ops

aten: Any = torch.ops.aten
Value = Callable[[GraphBuilder], torch.fx.Node]


def strided(build: GraphBuilder) -> torch.fx.Node:
    """Return a value with the strides of every second element."""
    like = build.placeholder(arange(4, 8)[:, ::2])
    return build.call(
        aten.copy.default, like, build.call(aten.mul.Tensor, build.placeholder(arange(4, 4)), 2)
    )


def by_rows(build: GraphBuilder) -> torch.fx.Node:
    return build.call(aten.mul.Tensor, build.placeholder(arange(4, 4)), 2)


def overlapping(build: GraphBuilder) -> torch.fx.Node:
    return build.call(aten.full_like.default, build.call(aten.empty_strided.default, [4, 4], [0, 1]), 1.0)


def rooms(value: Value, order: str) -> list[Any]:
    """Return the strides in which memory is given to a value that is viewed and written in this order."""
    build = GraphBuilder()
    written, by = value(build), build.placeholder(arange(4, 4) + 7)
    outputs = [written]
    for step in order:
        if step == "v":
            part = build.call(aten.slice.Tensor, written, 1, 0, 3)
            outputs.append(build.call(aten.add.Tensor, part, 1))
        else:
            build.graph.call_function(ops.scale.default, (written, by))
    build.graph.output(outputs)
    gm = GraphModule(torch.nn.Module(), build.graph)
    expected = [t.clone() for t in run(gm, [i.clone() for i in build.inputs])]
    realize(gm.graph)
    gm.graph.lint()
    gm.recompile()
    for was, now in zip(expected, run(gm, [i.clone() for i in build.inputs]), strict=True):
        assert torch.equal(was, now)
    return [n.args[2] for n in gm.graph.nodes if n.target is aten.as_strided.default]


def test_a_value_that_is_viewed_and_then_written_gets_its_strides() -> None:
    assert rooms(strided, "vw") == rooms(strided, "vwvw") == [[8, 2]]


@pytest.mark.parametrize(
    ("value", "order"),
    [(strided, "wv"), (strided, "v"), (strided, "w"), (by_rows, "vw"), (overlapping, "vw")],
)
def test_another_does_not(value: Value, order: str) -> None:
    assert rooms(value, order) == []


def program(x: torch.Tensor, w: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    x[0:5] = w - x[:, 2:3][..., 0]
    plus = x[:, :3] + 1
    ops.scale(x, by)
    x[1:5] = x[0:4] * 3
    return plus[:, 1]


@pytest.mark.parametrize("begin", [0, 7])
def test_inductor_reads_the_view_where_it_is(begin: int) -> None:
    """Seeds 81000527 and 81002526 of the hard programs."""

    def given() -> tuple[torch.Tensor, ...]:
        return arange(57)[begin : begin + 50][::2].view(5, 5), arange(5, 5), arange(5, 5)

    expected, actual = given(), given()
    result = program(*expected)
    fast = torch.compile(program, fullgraph=True, options=inductor_options())
    assert torch.equal(fast(*actual), result) and torch.equal(actual[0], expected[0])


@pytest.mark.parametrize("dynamic", [False, True])
def test_sizes_may_be_symbols(dynamic: bool) -> None:
    """Seed 915000229: Inductor takes a row of the difference row by row, and the kernel wants columns."""
    late, mix = adversary.operator("late"), adversary.operator("mix")

    def program(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        less = y - w
        chosen = torch.where(y[1:] > 50, y[1:], less[3])
        late(x * 1, less, None)
        mix(x[5:6, 5:8], w)
        return less.sum(), chosen

    def given() -> tuple[torch.Tensor, ...]:
        x, y, w = (((torch.arange(48) * 37 + first) % 101).float() for first in (3, 40, 71))
        return x.view(6, 8), y.view(8, 6).t(), w.view(6, 8)

    expected = program(*given())
    for _ in range(2):  # Inductor puts into memory early only what operators write that it has met before
        torch.compiler.reset()
        fast = torch.compile(program, fullgraph=True, dynamic=dynamic, options=inductor_options())
        with fresh_inductor_cache():
            torch.testing.assert_close(fast(*given()), expected)
    torch.compiler.reset()
