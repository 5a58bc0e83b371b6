"""reinplace.trace: from a program to its functional graph, which passes and checks take as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from pytest_reinplace import Reinplace
from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.passes.verify import EquivalenceError, assert_equivalent, copied

from . import graphs  # registers judgetest::write

aten = torch.ops.aten


class Step(torch.nn.Module):
    """A parameter, a buffer that is written, an operator that writes, and a count in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.register_buffer("cache", torch.zeros(8, 4))
        self.calls = 0

    def forward(self, x: torch.Tensor, *, pos: torch.Tensor) -> Any:
        self.calls += 1
        y = self.lin(x).relu()
        self.cache[pos] = y  # type: ignore[index]
        z = y * 2
        torch.ops.judgetest.write(z, x)
        return z, y.sum()


@pytest.fixture(params=["inductor", "exact"])
def reinplace(request: pytest.FixtureRequest) -> Iterator[Reinplace]:
    with Capture(request.param, "graph") as capture:
        yield Reinplace(capture)


def targets(gm: torch.fx.GraphModule) -> list[Any]:
    return [node.target for node in gm.graph.nodes if node.op == "call_function"]


def greedy(graph):  # type: ignore[no-untyped-def]
    """Write in place always: wrong."""
    for node in graph.find_nodes(op="call_function", target=aten.index_put.default):
        node.target = aten.index_put_.default


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_module_with_its_operators(reinplace: Reinplace, dynamic: bool | None) -> None:
    step, x = Step(), torch.randn(2, 4)
    traced = reinplace.trace(step, x, pos=torch.tensor([1, 2]), dynamic=dynamic)
    assert torch.ops.higher_order.auto_functionalized_v2 in targets(traced.gm)
    assert aten.copy_.default in targets(traced.gm)
    nodes = list(traced.gm.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    assert len(placeholders) == len(traced.inputs)
    assert all(
        node.meta["val"].shape == value.shape if isinstance(value, torch.Tensor) else isinstance(value, int)
        for node, value in zip(placeholders, traced.inputs, strict=True)
        if not dynamic or not isinstance(value, torch.Tensor)
    )
    assert any(isinstance(value, int) for value in traced.inputs) == bool(dynamic)
    assert "test_trace.py" in next(n.meta["stack_trace"] for n in nodes if n.target == aten.index_put.default)
    assert (step.calls, step.cache.abs().sum().item(), reinplace.graphs) == (0, 0, ())
    functional = copied(traced.gm)
    assert reinplace.apply(traced.gm, "exact").clones == []
    assert_equivalent(functional, traced.gm, traced.inputs)
    assert_equivalent(functional, lambda *values: eager(step, traced, values), traced.inputs, rtol=1e-5)


def eager(step: Step, traced: Any, values: Any) -> Any:
    """Call the program itself on what its graph is called with."""
    weight, bias, x, cache, pos = (value for value in values if isinstance(value, torch.Tensor))
    state = {"lin.weight": weight, "lin.bias": bias, "cache": cache}
    with torch.no_grad():
        return torch.func.functional_call(step, state, (x,), {"pos": pos})


def test_a_wrong_pass_is_found(reinplace: Reinplace) -> None:
    def keep(x: torch.Tensor, index: torch.Tensor) -> Any:
        y = x * 2
        return y.index_put((index,), torch.ones(1)), y.sum()

    traced = reinplace.trace(torch.compile(keep), torch.ones(8), torch.tensor([1]))
    functional = copied(traced.gm)
    assert reinplace.apply(traced.gm, greedy).clones == []
    with pytest.raises(EquivalenceError, match="the first node that differs is"):
        assert_equivalent(functional, traced.gm, traced.inputs)


def test_forward_and_backward(reinplace: Reinplace) -> None:
    step, x, cache = Step(), torch.randn(2, 4), torch.ones(2, 4)

    def program(x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        y = step.lin(x)
        cache.add_(1)
        z = y * cache
        z[0] = 1
        return z.sum()

    traced = reinplace.trace(program, x, cache, grad=True)
    assert traced.backward is not None
    assert cache.sum() == 8 and step.lin.weight.grad is None
    for one in (traced, traced.backward):
        functional = copied(one.gm)
        reinplace.apply(one.gm, "exact")
        assert_equivalent(functional, one.gm, one.inputs)
    results = [value for value in traced.gm(*traced.inputs) if isinstance(value, torch.Tensor)]
    expected = program(x, torch.ones(2, 4))
    assert any(value.shape == () and torch.allclose(value, expected) for value in results)


def breaks(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    print("between")
    return y + 1


@pytest.mark.parametrize(
    ("fn", "grad", "error", "message"),
    [
        (
            breaks,
            False,
            AssertionError,
            r"test_trace.py:\d+: `print\(.*\)` breaks the graph.*(\n.*)*one graph",
        ),
        (lambda x: 3, False, ValueError, "which compiles no graph"),
        (lambda x: x * 2, True, ValueError, "requires a gradient, for grad=True"),
    ],
)
def test_what_cannot_be_traced(fn: Any, grad: bool, error: Any, message: str, reinplace: Reinplace) -> None:
    with pytest.raises(error, match=message):
        reinplace.trace(fn, torch.ones(4), grad=grad)
    # What is compiled afterwards is captured again.
    torch.compile(graphs.add_in_place)(*graphs.add_in_place.inputs)
    assert len(reinplace.graphs) == 1
