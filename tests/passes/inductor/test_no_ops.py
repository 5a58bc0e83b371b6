"""Copies that Inductor's no-op removal would drop although something depends on them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.fx_passes.post_grad import remove_noop_ops
from torch.fx import GraphModule

from pytest_reinplace.passes import ProtectPass, ReinplacePass
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange, functional

aten = torch.ops.aten


def staged(
    fn: Callable[..., Any], *args: Any, protected: bool = True
) -> tuple[GraphModule, GraphModule, list[Any]]:
    """Return the graph of AOTAutograd, and what no-op removal and our passes make of it."""
    gm, inputs = functional(fn, *args)
    after = copy.copy(gm)
    after.graph = copy.deepcopy(gm.graph)
    if protected:
        ProtectPass()(after.graph)
        ReinplacePass()(after.graph)
    else:
        remove_noop_ops(after.graph)
    after.recompile()
    return gm, after, inputs


def source_then_target(source: torch.Tensor, target: torch.Tensor) -> None:
    target[:] = source[:]
    source.add_(1)


def target_then_source(target: torch.Tensor, source: torch.Tensor) -> None:
    target[:] = source[:]
    source.add_(1)


def half_then_source(source: torch.Tensor, target: torch.Tensor) -> None:
    """One of several views is a view of the source, too."""
    target[:] = source.chunk(1)[0]
    source.add_(1)


def swapped(a: torch.Tensor, b: torch.Tensor) -> None:
    old = a.clone()
    a.copy_(b)
    b.copy_(old)


def rotated(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    old = a.clone()
    a.copy_(b)
    b.copy_(c)
    c.copy_(old)


def twice(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    new = a + 1
    return new.clone(), new.clone()


def kept_input(a: torch.Tensor) -> torch.Tensor:
    old = a.clone()
    a.mul_(2)
    return old


def turned(a: torch.Tensor) -> None:
    a.copy_(a.t().clone())


def joined(a: torch.Tensor, b: torch.Tensor) -> None:
    b.copy_(torch.cat([a]))
    a.mul_(2)


def converted(a: torch.Tensor) -> torch.Tensor:
    old = a.double().float()
    a.add_(1)
    return old


def repeated(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
    new = a * 2
    again = new.repeat(1, 1)
    return new, again, new.view(-1), again.view(-1)


def neutral(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return a + torch.zeros(4, 4), a * torch.ones(4, 4)


PROGRAMS = [
    *(source_then_target, target_then_source, swapped, rotated, twice, kept_input, turned, joined),
    *(converted, repeated, neutral, half_then_source),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_stages_together_keep_the_contract(program: Callable[..., Any]) -> None:
    count = program.__code__.co_argcount
    gm, after, inputs = staged(program, *(arange(4, 4) + 100 * i for i in range(count)))
    assert_equivalent(gm, after, inputs)


def test_without_protection_they_do_not() -> None:
    """The twin: no-op removal really breaks programs, so the test above means something.

    Which ones depends on torch: before 2.15 it breaks ``source_then_target``, too.
    """
    gm, after, inputs = staged(twice, arange(4, 4), protected=False)
    with pytest.raises(AssertionError):
        assert_equivalent(gm, after, inputs)


def test_order_alone_saves_the_copy() -> None:
    _, after, _ = staged(source_then_target, arange(4), arange(4))
    assert aten.clone.default not in [n.target for n in after.graph.nodes]


def test_a_cycle_costs_one_copy() -> None:
    _, after, _ = staged(rotated, arange(4), arange(4), arange(4))
    assert [n.target for n in after.graph.nodes].count(aten.clone.default) == 1
