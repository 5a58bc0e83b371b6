"""``cat(split(x))``: ``x`` itself where nobody can tell, a copy elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_reinplace import AssertGraph

from ..trace import arange
from .stages import by_inductor, by_rule

aten = torch.ops.aten
Tensor = torch.Tensor


def targets(gm: torch.fx.GraphModule) -> list[Any]:
    return [n.target for n in gm.graph.nodes if n.op == "call_function"]


def returned(x: Tensor) -> Tensor:
    return torch.cat(torch.split(x, [2, 3], 1), 1)


def read(x: Tensor) -> Tensor:
    return torch.cat(torch.split(x, [2, 3], 1), 1) * 2


def then_written(x: Tensor) -> Tensor:
    y = torch.cat(torch.split(x, [2, 3], 1), 1)
    x.add_(1)
    return y


def stored_behind_the_write(x: Tensor) -> None:
    y = torch.cat(torch.split(x[0], [2, 3], 1), 1)
    x[0].add_(1)
    x[1].copy_(y)


def read_before_it_is_written(x: Tensor) -> Tensor:
    y = torch.cat(torch.split(x, [2, 3], 1), 1) * 2
    x.copy_(y)
    return y + 1


def two_outputs(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.sin()
    return y, torch.cat(y.split([2, 3], 1), 1)


def negative(x: Tensor) -> Tensor:
    return torch.cat(torch.split(x, [2, 3], -1), 1) * 2


def even(x: Tensor) -> Tensor:
    return torch.cat(torch.chunk(x, 2), 0) * 2


def turned(x: Tensor) -> Tensor:
    return torch.cat(torch.split(x.t(), [2, 3], 0), 0) * 2


@pytest.mark.parametrize("program", [read, read_before_it_is_written, negative, even])
@pytest.mark.parametrize("dynamic", [False, True])
def test_it_is_what_was_split(program: Callable[..., Any], dynamic: bool) -> None:
    applied, gm = by_rule("cat_of_split", program, arange(2, 5), dynamic=dynamic)
    assert len(applied.rewritten) == 1 and not applied.refused
    assert not {aten.cat.default, aten.clone.default} & set(targets(gm))
    assert by_inductor(program, arange(2, 5), dynamic=dynamic) == 0


@pytest.mark.parametrize("program", [returned, then_written, two_outputs])
@pytest.mark.parametrize("dynamic", [False, True])
def test_it_is_a_copy_where_it_is_told_apart(program: Callable[..., Any], dynamic: bool) -> None:
    applied, gm = by_rule("cat_of_split", program, arange(2, 5), dynamic=dynamic)
    assert len(applied.rewritten) == 1 and targets(gm).count(aten.clone.default) == 1
    assert aten.cat.default not in targets(gm)
    assert by_inductor(program, arange(2, 5), ours=False, dynamic=dynamic) == 1
    assert by_inductor(program, arange(2, 5), dynamic=dynamic) == 0


def test_it_is_laid_out_as_a_concatenation(assert_graph: AssertGraph) -> None:
    _, gm = by_rule("cat_of_split", turned, arange(2, 5))
    clone = "{_}: float32[5, 2] = aten.clone.default({_}, memory_format=contiguous_format)"
    assert_graph.matches(gm, f"{{_}}: float32[5, 2] strides [1, 5] = aten.permute...\n{clone}")


def other_order(x: Tensor) -> Tensor:
    a, b = torch.split(x, [2, 3], 1)
    return torch.cat([b, a], 1)


def other_dimension(x: Tensor) -> Tensor:
    return torch.cat(torch.split(x, [2, 2], 1), 0)


def part_missing(x: Tensor) -> Tensor:
    a, b, _ = torch.split(x, [1, 2, 2], 1)
    return torch.cat([a, b], 1)


def one_more(x: Tensor) -> Tensor:
    a, b = torch.split(x, [2, 3], 1)
    return torch.cat([a, b, a], 1)


@pytest.mark.parametrize("program", [other_order, other_dimension, part_missing, one_more])
def test_other_concatenations_stay(program: Callable[..., Any]) -> None:
    size = 4 if program is other_dimension else 5
    applied, gm = by_rule("cat_of_split", program, arange(2, size))
    assert not applied.rewritten and aten.cat.default in targets(gm)


def strange(x: Tensor) -> Tensor:
    return torch.cat(torch.split(x, [2, 2], 1), 1)


def test_what_is_laid_out_in_another_way_is_a_copy() -> None:
    """The concatenation of channels-last pieces that have gaps has none, and is no row-major one."""
    x = torch.arange(2 * 8 * 3 * 3.0).reshape(2, 8, 3, 3).to(memory_format=torch.channels_last)[:, :4]
    applied, gm = by_rule("cat_of_split", strange, x)
    assert len(applied.rewritten) == 1 and targets(gm) == [aten.clone.default]
    assert by_inductor(strange, x, ours=False) == 1
    assert by_inductor(strange, x) == 0
