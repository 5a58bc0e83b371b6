"""Sums with a factor of which a part is a matrix product: no pattern forgets the factor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.fx import Graph

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.defects import undefended
from pytest_reinplace.passes.inductor.mend import factors

from ..trace import arange, functional

Tensor = torch.Tensor


def added(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(y, x @ x, alpha=3)


def added_to(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(x @ x, y, alpha=0.5)


def of_two(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(x @ x, y @ y, alpha=0.5)


def codebook(x: Tensor, y: Tensor) -> Tensor:
    """A moving average of what was counted: its step was lost, and the codebook with it."""
    y.mul_(0.75).add_(x.t() @ x, alpha=0.25)
    return y / y.sum(0)


def plain(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(y, x @ x)


def without_a_product(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(x, y, alpha=3)


def of_another_dtype(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(y.double(), x @ x, alpha=0.1)


def graph_of(program: Callable[..., Tensor]) -> Graph:
    return functional(program, arange(4, 4), arange(4, 4))[0].graph


@pytest.mark.parametrize("program", [added, added_to, of_two])
def test_the_factor_is_written_out(program: Callable[..., Tensor]) -> None:
    graph = graph_of(program)
    assert factors.write_out(graph) == 1
    (product,) = graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor)
    (total,) = graph.find_nodes(op="call_function", target=torch.ops.aten.add.Tensor)
    assert total.args[1] is product and not total.kwargs
    assert product.meta["val"].dtype == torch.float32 and product.meta["val"].shape == (4, 4)
    given = arange(4, 4), arange(4, 4) + 1
    assert torch.equal(program(*given), torch.fx.GraphModule(torch.nn.Module(), graph)(*given)[0])
    assert factors.write_out(graph) == 0


@pytest.mark.parametrize("program", [plain, without_a_product, of_another_dtype])
def test_other_sums_stay(program: Callable[..., Tensor]) -> None:
    graph = graph_of(program)
    before = str(graph)
    assert factors.write_out(graph) == 0 and str(graph) == before


def test_it_can_be_switched_off() -> None:
    with undefended("forgotten-factor"):
        assert factors.write_out(graph_of(added)) == 0


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("stage", ["reinplace", "post_grad"])
@pytest.mark.parametrize("program", [added, added_to, of_two, codebook, plain])
def test_compiled_sums_have_their_factor(program: Callable[..., Tensor], stage: str) -> None:
    expected, given = ([arange(4, 4) / 16, arange(4, 4) / 8 + 1] for _ in range(2))
    torch.compiler.reset()
    result = torch.compile(program, options=inductor_options(stage=stage))(*given)  # type: ignore[arg-type]
    torch.testing.assert_close([result, *given], [program(*expected), *expected])
