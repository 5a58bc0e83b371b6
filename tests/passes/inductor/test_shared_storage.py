"""Inputs that lie in one storage are several buffers to Inductor, which follows the writes into each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import Report, inductor_options
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor import target
from pytest_reinplace.passes.inductor.refuse.buffers import Buffer, Buffers
from pytest_reinplace.passes.inductor.refuse.misordered import hazards
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.decision import Decision
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph

from ..trace import arange, functional, ops

Tensor = torch.Tensor
N = 96
aten = torch.ops.aten


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
@pytest.mark.parametrize("program", [overtaken, overtaken_by_parts])
def test_a_write_into_another_input_is_no_write_into_this_one(
    program: Callable[..., Tensor], is_one: bool
) -> None:
    assert any(
        "x" in str(o.source) or o.nbytes for o in decided(program, is_one).outcomes if not o.reinplaced
    )


@pytest.mark.parametrize("is_one", [True, False])
@pytest.mark.parametrize("program", [in_time, both_shifted])
def test_the_first_write_into_an_input_is_no_second_one(program: Callable[..., Tensor], is_one: bool) -> None:
    assert decided(program, is_one).clones == []


def test_compiled_programs_are_right() -> None:
    """Without the rule the first two are wrong."""
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


def test_what_only_the_graph_itself_writes_is_not_refused_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second copy would be misordered, and there is no write of ours to refuse for it."""
    asked: list[Decision] = []

    def counted(decision: Decision, buffers: Buffers) -> dict[Buffer, torch.fx.Node]:
        asked.append(decision)
        assert len(asked) < 100
        return hazards(decision, buffers)

    monkeypatch.setattr(target, "hazards", counted)
    build = GraphBuilder()
    x, w = build.placeholder(arange(N)), build.placeholder(arange(N))
    shifted = build.call(aten.mul.Tensor, build.call(aten.slice.Tensor, x, 0, 0, 40), 3)
    build.call(
        aten.copy_.default,
        build.call(aten.slice.Tensor, x, 0, 80, 82),
        build.call(aten.slice.Tensor, w, 0, 0, 2),
    )
    build.call(aten.copy_.default, build.call(aten.slice.Tensor, x, 0, 1, 41), shifted)
    gm = build.finished([])
    assert analyze_graph(gm.graph, Options(target=INDUCTOR)).clones == []
    assert hazards(asked[-1], Buffers(asked[-1]))
