"""Functional graphs of small programs, as AOTAutograd gives them to the post-grad stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pytest_reinplace.capture.capture import Capture


def _register() -> None:
    if hasattr(torch.ops.judgetest, "write"):
        return

    @torch.library.custom_op("judgetest::write", mutates_args={"out"})
    def write(out: torch.Tensor, value: torch.Tensor) -> None:
        out[: value.shape[0]] = value

    @torch.library.custom_op("judgetest::both", mutates_args={"a", "b"})
    def both(a: torch.Tensor, b: torch.Tensor) -> None:
        a.add_(1)
        b.add_(2)

    @torch.library.custom_op("judgetest::many", mutates_args={"xs"})
    def many(xs: Sequence[torch.Tensor]) -> None:
        for x in xs:
            x.add_(1)


_register()


def with_inputs(*inputs: Any, **config: Any) -> Callable[[Any], Any]:
    """Attach example inputs, and Inductor or Dynamo configuration, to a program."""

    def attach(program: Any) -> Any:
        program.inputs, program.config = inputs, config
        return program

    return attach


@with_inputs(torch.ones(8), torch.ones(4), enable_auto_functionalized_v2=False)
def twice_v1(x, value):
    """Write twice into one temporary, by v1 wrappers."""
    y = x * 2
    torch.ops.judgetest.write(y, value)
    torch.ops.judgetest.write(y, value + 1)
    return y.sum()


@with_inputs(torch.ones(8))
def both_v2(x):
    """Write two temporaries at once, by a v2 wrapper."""
    y, z = x * 2, x * 3
    torch.ops.judgetest.both(y, z)
    return y.sum(), z.sum()


@with_inputs(torch.ones(8), enable_auto_functionalized_v2=False)
def in_list(x):
    """Write the elements of a list."""
    y, z = x * 2, x * 3
    torch.ops.judgetest.many([y, z])
    return y.sum(), z.sum()


@with_inputs(torch.ones(4, 4), torch.ones(2))
def chain_of_scatters(x, value):
    """Write into a view of a view, which makes one scatter in another."""
    y = torch.mm(x, x)
    y[1][1:3] = value
    return torch.mm(y, x)


@with_inputs(torch.ones(4, 8), torch.ones(4))
def view_back(x, value):
    """Write into a row of an input by an operator."""
    torch.ops.judgetest.write(x[1], value)
    return value * 2


@with_inputs(torch.ones(8), torch.tensor([1, 2]))
def add_in_place(x, index):
    """Write into an input, which makes a copy back."""
    x[index] = 3.0
    return index * 2


def functional_of(program: Any, *inputs: Any) -> torch.fx.GraphModule:
    """Return the functional graph of a program."""
    found: list[torch.fx.GraphModule] = []

    def grab(gm: torch.fx.GraphModule) -> None:
        if not found:
            found.append(torch.fx.GraphModule(gm, _copied(gm.graph)))

    config = getattr(program, "config", {})
    with torch._inductor.config.patch(config), Capture("tests.plugin.graphs:leave", "graph") as capture:
        capture.pass_under_test = _grabbing(capture.pass_under_test, grab)
        torch.compile(program, fullgraph=True)(*(inputs or program.inputs))
    return found[0]


def leave(gm: torch.fx.GraphModule) -> None:
    """Leave everything functional."""


def _grabbing(under_test: Any, grab: Callable[[torch.fx.GraphModule], None]) -> Any:
    return type(under_test)(under_test.name, grab)


def _copied(graph: torch.fx.Graph) -> torch.fx.Graph:
    copied = torch.fx.Graph()
    copied.output(copied.graph_copy(graph, {}))
    return copied
