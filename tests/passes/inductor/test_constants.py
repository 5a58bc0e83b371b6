"""Constants that the backward begins sums with are made there, and not saved."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._functorch.compile_utils import fx_graph_cse
from torch._inductor import metrics
from torch.fx import Node

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.mend import constants
from pytest_reinplace.passes.oracle.call import called, differences, peak

from ..trace import arange, ops

Tensor = torch.Tensor
aten: Any = torch.ops.aten
FEW, MANY = 4, 1 << 15  # elements, of which the many are worth a kernel


class Joint(GraphBuilder):
    """A graph that adds to constants, forward and backward."""

    def __init__(self, count: int = FEW) -> None:
        super().__init__()
        self.count = count
        self.given = self.placeholder(torch.ones(count))
        self.index = self.placeholder(torch.arange(count))
        self.gradient = self.graph.placeholder("tangents_1")
        self.gradient.meta["val"] = self.fresh(self.given.meta["val"])

    def constant(self, value: Any = 0, **options: Any) -> Node:
        """Add a constant, as functionalization does."""
        return self.call(aten.full.default, [self.count], value, **options)

    def added(self, base: Node, value: Node) -> Node:
        """Add a sum that begins with a constant."""
        return self.call(aten.index_put.default, base, [self.index], value, accumulate=True)

    def made(self, *outputs: Node) -> int:
        """Return how many constants the backward makes, once the graph returns these."""
        self.graph.output((outputs,))
        made = constants.make_late(self.graph)
        self.graph.lint()
        return made

    def constants(self) -> list[Node]:
        """Return the constants that are left once equal ones are merged."""
        self.graph.eliminate_dead_code()
        merged = fx_graph_cse(self.graph)
        return list(merged.find_nodes(op="call_function", target=aten.full.default))


def test_a_sum_of_the_backward_begins_with_a_constant_of_its_own() -> None:
    b = Joint()
    forward, backward = (b.added(b.constant(), n) for n in (b.given, b.gradient))
    scaled = b.call(aten.mul.Tensor, b.gradient, b.constant())
    assert b.made(forward, backward, scaled) == 1
    first, own = b.constants()
    assert [len(n.users) for n in (first, own)] == [1, 2]
    assert own.meta["val"].shape == first.meta["val"].shape


def test_a_constant_that_both_begin_with_is_taken_apart() -> None:
    b = Joint()
    zeros = b.constant()
    assert b.made(b.added(zeros, b.given), b.added(zeros, b.gradient)) == 1
    assert [len(n.users) for n in b.constants()] == [1, 1]


def test_what_is_computed_elementwise_of_a_constant_keeps_it() -> None:
    b = Joint()
    zeros = b.constant()
    assert b.made(b.added(zeros, b.given), b.call(aten.mul.Tensor, zeros, b.gradient)) == 0


def test_a_constant_of_the_backward_alone_stays() -> None:
    b = Joint()
    assert b.made(b.given, b.added(b.constant(), b.gradient)) == 0


@pytest.mark.parametrize(("one", "other"), [(0, 0.0), (0.0, -0.0), (1, True)])
def test_constants_that_are_not_the_same_stay(one: float, other: float) -> None:
    b = Joint()
    sums = []
    for value, added in ((one, b.given), (other, b.gradient)):
        zeros = b.constant(value)
        sums.append(b.added(zeros, b.call(aten.to.dtype, added, zeros.meta["val"].dtype)))
    assert b.made(*sums) == 0


def test_constants_of_two_dtypes_stay() -> None:
    b = Joint()
    whole = b.constant(dtype=torch.int64)
    sums = b.added(whole, b.index), b.added(b.constant(dtype=torch.float32), b.gradient)
    assert b.made(*sums) == 0


def test_a_constant_that_is_written_stays() -> None:
    b = Joint()
    zeros = b.constant()
    forward, backward = b.added(zeros, b.given), b.added(zeros, b.gradient)
    b.called(aten.add_.Tensor, (zeros, b.gradient), zeros.meta["val"])
    assert b.made(forward, backward, b.added(zeros, b.gradient)) == 0


def test_gradients_that_are_constants_are_two_tensors() -> None:
    b = Joint()
    first, second = b.constant(), b.constant()
    assert b.made(b.added(b.constant(), b.given), b.added(b.constant(), b.gradient), first, second) == 1
    (output,) = b.graph.find_nodes(op="output")
    assert output.args[0][0][2:] == (first, second)  # type: ignore[index]


def test_what_wrappers_write_are_two_tensors() -> None:
    b = Joint()
    bases = b.constant(), b.constant()
    written = [b.v2(ops.scale.default, {"x": (base, base)}, by=b.gradient)[1] for base in bases]
    assert b.made(b.added(b.constant(), b.given), b.added(b.constant(), b.gradient), *written) == 1
    assert [len(base.users) for base in bases] == [1, 1]


@pytest.mark.parametrize(
    ("count", "sums", "parts", "made"), [(FEW, 2, 3, 1), (FEW, 3, 0, 0), (FEW, 0, 1, 1), (MANY, 3, 0, 1)]
)
def test_kernels_are_weighed(count: int, sums: int, parts: int, made: int) -> None:
    """A part that is stored into a constant has no kernel of its own."""
    b = Joint(count)
    zeros = b.constant()
    found = [b.added(zeros, b.call(aten.mul.Tensor, b.gradient, n)) for n in range(sums)]
    part = b.call(aten.slice.Tensor, b.gradient, 0, 0, 2)
    found += [b.call(aten.slice_scatter.default, zeros, part, 0, n, n + 2) for n in range(parts)]
    assert b.made(b.added(zeros, b.given), *found) == made


# -- inside Inductor ---------------------------------------------------------------------------------


def summed(x: Tensor, index: Tensor, w: Tensor) -> list[Tensor]:
    """Sums over rows, of which the backward has two as well."""
    for _ in range(2):
        rows = x[index] * w
        x = torch.zeros_like(x).index_add(0, index, rows).sin()
    return [x]


def given() -> list[Tensor]:
    index = torch.tensor([0, 3, 3, 1, 7, 60])
    return [arange(64, 8).requires_grad_(), index, (arange(6, 8) / 7).requires_grad_()]


def cost(*, dynamic: bool) -> tuple[int, int]:
    """Return the peak of the program, forward and backward, and its kernels; check what it does."""
    torch.compiler.reset()
    metrics.reset()
    compiled = torch.compile(summed, fullgraph=True, dynamic=dynamic, options=inductor_options())
    expected, inputs = given(), given()
    want, found = called(summed, expected), called(compiled, inputs)
    assert not list(differences(want, found))
    for one, other in zip(expected, inputs, strict=True):
        torch.testing.assert_close(other.grad, one.grad)
    kernels = metrics.generated_kernel_count
    return peak(compiled, given()), kernels


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("dynamic", [False, True])
def test_no_zeros_are_saved(dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    held, kernels = cost(dynamic=dynamic)
    monkeypatch.setattr(constants, "make_late", lambda graph: 0)
    saved, more = cost(dynamic=dynamic)
    assert held + 64 * 8 * 4 <= saved
    assert kernels <= more
