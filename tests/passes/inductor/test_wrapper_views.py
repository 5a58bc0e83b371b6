"""Views that wrappers make of inputs that begin inside their storage, before and after stores into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.mend.wrapper_views import count_from_bases, move_with_bases

from ..trace import functional, ops

Tensor = torch.Tensor
ONE = torch.ones(1)


def selected(x: Tensor) -> None:
    x[0] = 7.0
    ops.scale(x[1:2, :2], ONE)


def overwritten(x: Tensor) -> None:
    x[:] = torch.arange(24.0).view(6, 4)
    ops.scale(x[1:3, 1:3], ONE)
    ops.scale(x[1:3], ONE)


def in_turns(x: Tensor) -> None:
    ops.scale(x[1:3], ONE)
    ops.scale(x[2:, 1:], ONE)
    x[3:5].add_(1)
    ops.some([x[1:2, :1], x[3:]], x[1:2, 2:])


def transposed(x: Tensor) -> None:
    x.t()[0] = 5.0
    ops.scale(x.t()[1:3, 1:3], ONE)


def narrowed(x: Tensor) -> None:
    y = x.narrow(0, 1, 4)
    y.narrow(1, 1, 3).mul_(2)
    ops.scale(y.narrow(0, 1, 2).narrow(1, 1, 2), ONE)


def computed(x: Tensor) -> None:
    y = x[1:] * 2
    y.copy_(x[:5])
    ops.scale(y[1:3, 1:3], ONE)
    x[1:] += y


PROGRAMS: list[Callable[[Tensor], None]] = [selected, overwritten, in_turns, transposed, narrowed, computed]


@pytest.fixture
def alone() -> Iterator[None]:
    torch.compiler.reset()
    with fresh_inductor_cache():
        yield
    torch.compiler.reset()


def part(begin: int) -> Tensor:
    return torch.arange(48.0)[begin : begin + 24].view(6, 4)


def is_right(program: Callable[[Tensor], None], dynamic: bool) -> bool:
    given, expected = part(9), part(9)
    program(expected)
    torch.compile(program, fullgraph=True, dynamic=dynamic, options=inductor_options())(given)
    return torch.equal(torch.as_strided(given, (48,), (1,), 0), torch.as_strided(expected, (48,), (1,), 0))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_right_elements_are_written(
    alone: None, program: Callable[[Tensor], None], dynamic: bool
) -> None:
    assert is_right(program, dynamic)


def wrapper_of(gm: Any) -> Any:
    return next(n for n in gm.graph.nodes if "auto_functionalized" in str(n.target))


@pytest.mark.parametrize("dynamic", [False, True])
def test_slices_count_from_their_base(dynamic: bool) -> None:
    gm, _ = functional(in_turns, part(8), dynamic=dynamic)
    count_from_bases(gm.graph)
    kwargs = wrapper_of(gm).kwargs
    assert (kwargs["_x_slice_start"], kwargs["_x_slice_end"]) == (1, 3)
    assert count_from_bases(gm.graph) == 0  # once
    gm.graph.lint()


def test_offsets_move_along_with_a_base_that_begins_elsewhere_later() -> None:
    gm, _ = functional(selected, part(8))
    wrapper = wrapper_of(gm)
    base, offset = wrapper.kwargs["_all_bases"][0], wrapper.kwargs["_x_storage_offset"]
    count_from_bases(gm.graph)
    assert move_with_bases(gm.graph) == 0
    begin = base.meta["val"].storage_offset()
    mode = base.meta["val"].fake_mode
    with mode:
        base.meta["val"] = torch.empty(40)[3:27].view(6, 4)
    assert move_with_bases(gm.graph) == 1
    assert wrapper.kwargs["_x_storage_offset"] == offset - begin + 3
    assert move_with_bases(gm.graph) == 0
