"""Readers that Inductor would run in one kernel with a later store, each beside one that it may."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import Reason, Report, inductor_options
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph

from ..trace import arange, functional, ops

Tensor = torch.Tensor
Program = Callable[..., Tensor]
N, SIDE = 96, 24  # more than a vector holds: what one loads, it loads before it stores


def decided(program: Program, *given: Tensor) -> Report:
    """Decide the graph of a program as Inductor would be given it."""
    inputs = given or (arange(N), arange(N) + 5)
    return analyze_graph(functional(program, *inputs)[0].graph, Options(target=INDUCTOR))


def shifted(x: Tensor, w: Tensor) -> Tensor:
    """Read one part of what was written before, then store over it, one element further."""
    x[80:82] = 7
    z = x[0:40] + w[:40]
    x[1:41] = w[:40] * 3
    return z


def shifted_after_a_kernel(x: Tensor, w: Tensor) -> Tensor:
    ops.scale(x, w)
    z = x[0:40] + w[:40]
    x[1:41] = w[:40] * 3
    return z


def shifted_through_another_buffer(x: Tensor, w: Tensor) -> Tensor:
    """The reader is itself a store, elsewhere, which the second store reads."""
    y = w * 2
    ops.scale(y, w)
    x[80:82] = 7
    y[0:40] = x[0:40] + w[:40]
    x[1:41] = y[0:40] * 3
    return y


def summed_by_columns(x: Tensor, w: Tensor) -> Tensor:
    x[0] = 7
    z = x.sum(0) + w[0]
    x[1:] = w[1:] * 3
    return z


def turned(x: Tensor, w: Tensor) -> Tensor:
    x[0] = 7
    z = x[1:, 1:].t() + w[1:, 1:]
    x[1:, 1:] = w[1:, 1:] * 3
    return z


def one_row_of_many(x: Tensor, w: Tensor) -> Tensor:
    """What is taken out of a value is computed by itself, with other elements in its turns."""
    x[80:82] = 7
    z = (x[0:40] * 2)[None] + w[:40, None]
    part = z[:, 1]
    x[0:40] = w[:40] * 3
    return part + w[:40]


SQUARE = (arange(SIDE, SIDE), arange(SIDE, SIDE) + 5)
OVERTAKEN: dict[str, tuple[Program, tuple[Tensor, ...]]] = {
    "shifted": (shifted, ()),
    "after a kernel": (shifted_after_a_kernel, ()),
    "through another buffer": (shifted_through_another_buffer, ()),
    "summed": (summed_by_columns, SQUARE),
    "turned": (turned, SQUARE),
    "part": (one_row_of_many, ()),
}


@pytest.mark.parametrize("name", OVERTAKEN)
def test_a_reader_that_a_store_would_overtake_keeps_it_functional(name: str) -> None:
    program, given = OVERTAKEN[name]
    reasons = {o.reason for o in decided(program, *given).outcomes if not o.reinplaced}
    assert Reason.LOWERING in reasons


def first_write(x: Tensor, w: Tensor) -> Tensor:
    """Nothing was written before: Inductor compares the elements itself."""
    z = x[0:40] + w[:40]
    x[1:41] = w[:40] * 3
    return z


def same_elements(x: Tensor, w: Tensor) -> Tensor:
    x[80:82] = 7
    z = x[1:41] + w[:40]
    x[1:41] = w[:40] * 3
    return z


def other_bytes(x: Tensor, w: Tensor) -> Tensor:
    x[80:82] = 7
    z = x[41:81] + w[:40]
    x[1:41] = w[:40] * 3
    return z


def read_before_the_write_between(x: Tensor, w: Tensor) -> Tensor:
    """The write between waits for the reader, and the store for that write."""
    z = x[0:40] + w[:40]
    x[80:82] = 7
    x[1:41] = w[:40] * 3
    return z


def read_by_a_kernel(x: Tensor, w: Tensor) -> Tensor:
    x[80:82] = 7
    y = w * 2
    ops.scale(y[:40], x[0:40])
    x[1:41] = w[:40] * 3
    return y


def alone(x: Tensor, w: Tensor) -> Tensor:
    """The sum shares nothing with the store but the bytes that are read, in one order."""
    x[0] = 7
    x.t().mul_(2)
    return x.sum()


def put_by_an_index_that_is_read(x: Tensor, i: Tensor) -> Tensor:
    """Inductor never fuses a reader with a store whose place it does not know."""
    x[80:82] = 7
    z = x[0:3] + i
    x[i] = i * 3
    return z


def out_of_a_broadcast(x: Tensor, w: Tensor) -> Tensor:
    x[80:82] = 7
    z = x[0:40] + w[:40].view(40, 1)
    part = z[1]
    x[0:40] = w[:40] * 3
    return part + w[:40]


IN_TIME: dict[str, tuple[Program, tuple[Tensor, ...]]] = {
    "the first write": (first_write, ()),
    "the same elements": (same_elements, ()),
    "other bytes": (other_bytes, ()),
    "before the write between": (read_before_the_write_between, ()),
    "by a kernel": (read_by_a_kernel, ()),
    "alone": (alone, SQUARE[:1] * 2),
    "an index": (put_by_an_index_that_is_read, (arange(N).long(), torch.tensor([0, 3, 5]))),
    "a broadcast": (out_of_a_broadcast, ()),
}


@pytest.mark.parametrize("name", IN_TIME)
def test_what_no_store_overtakes_is_written_in_place(name: str) -> None:
    program, given = IN_TIME[name]
    assert decided(program, *given).clones == []


@pytest.mark.parametrize("is_range", [True, False])
def test_inductor_knows_the_places_of_a_range(is_range: bool) -> None:
    def program(x: Tensor, i: Tensor) -> Tensor:
        x[80:82] = 7
        z = x[0:3] + i
        x.index_put_((torch.arange(1, 4) if is_range else i,), i * 3)
        return z

    report = decided(program, arange(N).long(), torch.tensor([0, 3, 5]))
    assert (report.clones == []) is not is_range


def test_long_graphs_are_looked_at_once() -> None:
    """Each reader is looked at for the write that follows it only."""

    def program(x: Tensor, w: Tensor) -> Tensor:
        total = w
        for i in range(150):
            total = total + x[i % 6] * w
            x[i % 6 + 3] = w[0] * i
        return total

    assert decided(program, arange(N), arange(3)).outcomes


@pytest.mark.parametrize("is_square", [False, True])
def test_compiled_programs_are_right(is_square: bool) -> None:
    """All programs of one kind in one compilation; without the rule, the first is wrong."""
    chosen = [p for p, given in (*OVERTAKEN.values(), *IN_TIME.values()) if bool(given) is is_square]
    chosen = [p for p in chosen if p is not put_by_an_index_that_is_read]
    shape = (SIDE, SIDE) if is_square else (N,)
    count = len(chosen)

    def every(*tensors: Tensor) -> list[Tensor]:
        return [p(*tensors[2 * i : 2 * i + 2]) for i, p in enumerate(chosen)]

    given = [arange(*shape) + i for i in range(2 * count)]
    expected = [t.clone() for t in given]
    results = every(*expected)
    torch._dynamo.reset()
    with fresh_inductor_cache():
        actual = torch.compile(every, fullgraph=True, options=inductor_options())(*given)
    torch._dynamo.reset()
    for program, one, other in zip(chosen, results, actual, strict=True):
        assert torch.equal(one, other), program.__name__
    for i, (one, other) in enumerate(zip(expected, given, strict=True)):
        assert torch.equal(one, other), chosen[i // 2].__name__
