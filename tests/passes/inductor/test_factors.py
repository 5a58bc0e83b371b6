"""Sums of matrix products, and differences of lists, with a factor: Inductor does not forget it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def graph_of(program: Callable[..., Any]) -> Graph:
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


def subtracted(x: Tensor, y: Tensor) -> list[Tensor]:
    return list(torch._foreach_sub([x, y], [y, x], alpha=3))


def averaged(x: Tensor, y: Tensor) -> None:
    """An optimizer's step, whose size was lost."""
    torch._foreach_sub_([x, y], [y * 2, x + 1], alpha=0.25)


def plainly_subtracted(x: Tensor, y: Tensor) -> list[Tensor]:
    return list(torch._foreach_sub([x, y], [y, x]))


def by_its_length(x: Tensor, y: Tensor) -> list[Tensor]:
    return list(torch._foreach_sub([x, y], [y, x], alpha=x.shape[0]))


@pytest.mark.parametrize("program", [subtracted, by_its_length])
def test_differences_of_lists_become_sums(program: Callable[..., list[Tensor]]) -> None:
    module, given = functional(program, arange(4, 4), arange(4, 4) + 1, dynamic=program is by_its_length)
    assert factors.write_out(module.graph) == 1
    assert not module.graph.find_nodes(op="call_function", target=torch.ops.aten._foreach_sub.List)
    expected = program(*(value for value in given if isinstance(value, Tensor)))
    module.recompile()
    torch.testing.assert_close(list(module(*given)), expected, rtol=0, atol=0)
    assert factors.write_out(module.graph) == 0


def test_plain_differences_of_lists_stay() -> None:
    graph = graph_of(plainly_subtracted)
    before = str(graph)
    assert factors.write_out(graph) == 0 and str(graph) == before


def test_it_can_be_switched_off() -> None:
    with undefended("forgotten-factor"), undefended("forgotten-factor-of-lists"):
        assert factors.write_out(graph_of(added)) == 0
        assert factors.write_out(graph_of(subtracted)) == 0


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("stage", ["reinplace", "post_grad"])
@pytest.mark.parametrize("program", [added, added_to, of_two, codebook, plain, subtracted, averaged])
def test_compiled_sums_have_their_factor(program: Callable[..., Any], stage: str) -> None:
    expected, given = ([arange(4, 4) / 16, arange(4, 4) / 8 + 1] for _ in range(2))
    torch.compiler.reset()
    result = torch.compile(program, options=inductor_options(stage=stage))(*given)  # type: ignore[arg-type]
    torch.testing.assert_close([result, *given], [program(*expected), *expected])
