"""Windows of a view that do not overlap: written and read as what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache
from torch.fx import Graph

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.mend import windows
from pytest_reinplace.passes.inductor.stage import ReinplacePass

from ..trace import functional, ops

Tensor = torch.Tensor
unfold: Any = torch.ops.aten.unfold.default


def filled(x: Tensor) -> None:
    x[:, 2].unfold(0, 2, 2)[0].fill_(7)


def multiplied_in_a_list(x: Tensor) -> None:
    x.sub_(x + (x - 4))
    torch._foreach_mul_([x[1].unfold(0, 2, 2)[0]], [6])


def written_by_a_kernel(x: Tensor) -> None:
    x.mul_(2)
    ops.scale(x[:, 1].unfold(0, 2, 3)[1], x[0, :2])


def masked(x: Tensor) -> None:
    windows = x.view(-1).chunk(2)[1].unfold(0, 4, 4)[0]
    windows[windows > 20] = 3


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("program", [filled, multiplied_in_a_list, written_by_a_kernel, masked])
def test_compiled_programs_are_right(program: Callable[[Tensor], None]) -> None:
    expected, actual = (torch.arange(64).view(8, 8) for _ in range(2))
    program(expected)
    torch.compiler.reset()
    with fresh_inductor_cache():
        torch.compile(program, fullgraph=True, options=inductor_options())(actual)
    torch.compiler.reset()
    assert torch.equal(actual, expected)


def windows_of(source: Callable[[Tensor], Tensor], *how: int) -> tuple[Graph, Tensor, Tensor]:
    """Return a graph of windows, mended, with what it and eager mode make of an input."""
    given = torch.arange(60).view(10, 6)
    gm, _ = functional(lambda x: source(x).unfold(*how), given)
    windows.reshape(gm.graph)
    gm.graph.lint()
    gm.recompile()
    (result,) = torch.utils._pytree.tree_leaves(gm(given))
    return gm.graph, result, source(given).unfold(*how)


@pytest.mark.parametrize("how", [(0, 2, 2), (-1, 1, 2), (1, 2, 2), (0, 2, 4), (0, 4, 4)])
def test_they_are_reshaped_views(how: tuple[int, int, int]) -> None:
    graph, result, expected = windows_of(lambda x: x[2:].t()[2:].t(), *how)
    assert not graph.find_nodes(op="call_function", target=unfold)
    assert torch.equal(result, expected)
    assert (result.stride(), result.storage_offset()) == (expected.stride(), expected.storage_offset())


@pytest.mark.parametrize(
    ("source", "how"),
    [
        (lambda x: x[2:], (0, 3, 2)),  # they overlap
        (lambda x: x[2:], (0, 2, 6)),  # the last step is not whole
        (lambda x: x, (0, 2, 2)),  # no view
    ],
)
def test_others_are_left_as_they_are(source: Any, how: tuple[int, int, int]) -> None:
    graph, result, expected = windows_of(source, *how)
    assert graph.find_nodes(op="call_function", target=unfold) and torch.equal(result, expected)


def test_sizes_that_are_not_known_are_left_as_they_are() -> None:
    gm, _ = functional(lambda x: x[2:].unfold(0, 2, 2) + 1, torch.arange(60).view(10, 6), dynamic=True)
    before = str(gm.graph)
    assert windows.reshape(gm.graph) == 0 and str(gm.graph) == before
    ReinplacePass().apply(gm.graph)


def test_other_sizes_may_be_symbols() -> None:
    """A graph that is run as it is needs nodes for them."""
    x = torch.arange(60).view(10, 6)

    def program(x: Tensor) -> Tensor:
        return torch.stack([x, x + 1, x + 2])[1:].unfold(0, 2, 2) * 2

    gm, inputs = functional(program, x, dynamic=True)
    assert windows.reshape(gm.graph) == 1
    gm.graph.lint()
    gm.recompile()
    (result,) = torch.utils._pytree.tree_leaves(gm(*inputs))
    assert torch.equal(result, program(x))
