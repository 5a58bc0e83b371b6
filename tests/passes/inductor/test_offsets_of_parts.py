"""Parts of what is computed, of symbolic sizes, are written where they begin, whatever their strides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.defects import undefended

from ..trace import arange, ops

Tensor = torch.Tensor
pytestmark = pytest.mark.usefixtures("quick")


def scale(part: Tensor) -> None:
    ops.scale(part, torch.ones(()))


def head(x: Tensor) -> Tensor:
    heads = x.view(x.shape[0], 4, -1) * 3
    scale(heads[:, 1])
    return heads


def element_of_a_head(x: Tensor) -> Tensor:
    heads = x.view(x.shape[0], 4, -1) * 3
    scale(heads[:, -1, 2])
    return heads


def rows_of_heads(x: Tensor) -> Tensor:
    heads = x.view(x.shape[0], 4, -1) * 3
    scale(heads[3:, 1:3, 2:])
    return heads


def half(x: Tensor) -> Tensor:
    halves = x.view(2, -1, x.shape[1]) * 3
    scale(halves[1])
    return halves


def row_of_columns(x: Tensor) -> Tensor:
    columns = x[:, : x.shape[0] // 4].clone()
    scale(columns[1])
    return columns


def rows_of_a_count(x: Tensor) -> Tensor:
    count = x.long()[0, 3].item()
    torch._check(count >= 1)
    torch._check(count <= 4)
    rows = x[:count] + 1
    scale(rows[1:][1:, 1])  # begins after min(1, count - 1) + 1 rows
    return rows


PROGRAMS = [head, element_of_a_head, rows_of_heads, half, row_of_columns]
if torch.__version__ >= "2.13":  # 2.11 does not trace it
    PROGRAMS.append(rows_of_a_count)


def right(program: Callable[[Tensor], Tensor]) -> list[bool]:
    torch.compiler.reset()
    compiled = torch.compile(program, fullgraph=True, dynamic=True, options=inductor_options())
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        return [torch.equal(compiled(x), program(x)) for x in (arange(16, 16), arange(32, 32))]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_part_is_written_where_it_begins(program: Callable[[Tensor], Tensor]) -> None:
    assert right(program) == [True, True]


@pytest.mark.skipif(torch.__version__ < "2.13", reason="torch 2.11 does not trace the program")
def test_without_it_the_beginning_is() -> None:
    """The twin: Inductor lowers the offset of the view to that of the buffer."""
    with fresh_inductor_cache(), undefended("offset-of-a-view"):
        assert right(rows_of_a_count) == [False, False]
