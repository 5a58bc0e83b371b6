"""Inputs that lie in one storage are several buffers to Inductor, which follows the writes into each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import Report, inductor_options
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph

from ..trace import arange, functional, ops

Tensor = torch.Tensor
N = 96


def overtaken(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """Between the two writes into x, and after the first one's reader, another input is written."""
    x[80:82] = 7
    z = x[0:40] + w[:40]
    y[0:2] = 5
    x[1:41] = w[:40] * 3
    return z


def overtaken_by_parts(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """The same, by views of parts, and a kernel in between whose result is written into."""
    lower, upper = x[:64].split(32)
    upper[16:18] = 7
    ops.scale(x[:48], w[:48])
    z = x[0:40] + w[:40]
    y.view(2, -1)[0].fill_(5)
    lower[1:31] = w[:30] * 3
    return z


def in_time(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    y[80:82] = 7
    z = x[0:40] + w[:40]
    x[1:41] = w[:40] * 3
    return z


def both_shifted(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    x[1:41] = x[0:40] * 3
    y[1:41] = y[0:40] * 3
    return w + 1


def given(is_one: bool) -> list[Tensor]:
    x, y = arange(2, N)
    return [x, y, arange(N) * 5] if is_one else [x.clone(), y.clone(), arange(N) * 5]


def decided(program: Callable[..., Tensor], is_one: bool) -> Report:
    return analyze_graph(functional(program, *given(is_one))[0].graph, Options(target=INDUCTOR))


@pytest.mark.parametrize("is_one", [True, False])
@pytest.mark.parametrize("program", [overtaken, overtaken_by_parts, in_time, both_shifted])
def test_all_are_written_in_place(program: Callable[..., Tensor], is_one: bool) -> None:
    assert decided(program, is_one).clones == []


def test_compiled_programs_are_right() -> None:
    """Without the veto of fusions the first two are wrong."""
    programs = (overtaken, overtaken_by_parts, in_time, both_shifted)

    def every(*tensors: Tensor) -> list[Tensor]:
        return [p(*tensors[3 * i : 3 * i + 3]) for i, p in enumerate(programs)]

    expected, actual = ([t for _ in programs for t in given(True)] for _ in range(2))
    results = every(*expected)
    torch.compiler.reset()
    with fresh_inductor_cache():
        found = torch.compile(every, fullgraph=True, options=inductor_options())(*actual)
    torch.compiler.reset()
    for i, (one, other) in enumerate(zip((*results, *expected), (*found, *actual), strict=True)):
        assert torch.equal(one, other), i
