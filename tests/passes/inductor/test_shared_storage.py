"""Inputs that lie in one storage are several buffers to Inductor, which follows the writes into each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import Report, inductor_options
from pytest_reinplace.passes.inductor import computed_in_inputs
from pytest_reinplace.passes.inductor.mend.epilogues import shared_inputs
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.facts.target import NODE_BY_NODE, Target
from pytest_reinplace.passes.reinplacing.run import analyze_graph, reinplace_graph

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


# -- with symbols for where they begin ---------------------------------------------------------------


def rotated(q: Tensor, k: Tensor, by: Tensor) -> Tensor:
    """Queries and keys, parts of one product."""
    ops.scale(q, by)
    ops.scale(k, by)
    return q @ k.T


def columns(rows: int, second: int = 4) -> list[Tensor]:
    """Return two parts of the same rows, and a number; they overlap unless the second begins at four."""
    both = arange(rows, 12).double()
    return [both[:, :4], both[:, second : second + 4], torch.full((), 2.0, dtype=torch.double)]


def halves() -> list[Tensor]:
    """Return two parts of a row."""
    row = arange(2 * N).double()
    return [row[:N], row[N:]]


def kept_in_first(x: Tensor, y: Tensor) -> Tensor:
    """What overwrites all of an input, with another one behind it in the storage."""
    x.copy_(y * 2)
    lower, upper = x.chunk(2)
    lower.index_add_(0, torch.tensor([0, 2]), upper[:2])
    return y + 1


def named_by_an_offset(x: Tensor, y: Tensor) -> Tensor:
    """What is named in the storage of one input is the other one's."""
    old = y.as_strided((N,), (1,), 0)
    ops.scale(x, x.new_ones(()))
    return old.cumsum(0)


@pytest.mark.parametrize(
    ("program", "inputs", "target", "clones"),
    [
        (rotated, columns(6), INDUCTOR, 0),
        (rotated, columns(6), NODE_BY_NODE, 4),  # its inputs may be anybody's
        (named_by_an_offset, halves(), INDUCTOR, 2),
    ],
)
def test_inputs_of_one_storage_with_symbols(
    program: Callable[..., Tensor], inputs: list[Tensor], target: Target, clones: int
) -> None:
    """AOTAutograd guards that they do not overlap."""
    graph = functional(program, *inputs, dynamic=True)[0].graph
    report = analyze_graph(graph, Options(order="keep", target=target))
    assert len(report.clones) == clones, report


class TangentAOTInput:
    """What AOTAutograd says of a gradient that a backward graph is given."""


@pytest.mark.parametrize("described", [None, TangentAOTInput()])
def test_what_a_backward_is_given_may_overlap(described: object) -> None:
    """It may be views of one another that the forward saved, of which AOTAutograd says nothing."""
    graph = functional(rotated, *columns(6), dynamic=True)[0].graph
    *_, last = graph.find_nodes(op="placeholder")
    last.meta["desc"] = described
    assert len(analyze_graph(graph, Options(order="keep", target=INDUCTOR)).clones) == 4


def scaled(x: Tensor, by: Tensor) -> Tensor:
    ops.scale(x, by)
    return x * 2


def summed(x: Tensor, by: Tensor) -> Tensor:
    """The operator is given the input as it is after a write."""
    x[:-1].cumsum_(0)
    return scaled(x, by)


@pytest.mark.parametrize(
    ("program", "step", "is_described", "clones"),
    [
        (scaled, 9, True, 0),
        (scaled, 3, True, 2),
        (scaled, 9, False, 2),
        (summed, 9, True, 0),
        (summed, 9, False, 3),
    ],
)
def test_an_input_that_may_overlap_itself(
    program: Callable[..., Tensor], step: int, is_described: bool, clones: int
) -> None:
    """It is taken for what it is in the call that is compiled, if it is an input of the program."""
    x = arange(64).double().as_strided((4, 6), (step, 1))
    graph = functional(program, x, torch.full((), 2.0, dtype=torch.double), dynamic=True)[0].graph
    for node in () if is_described else graph.find_nodes(op="placeholder"):
        del node.meta["desc"]
    assert len(analyze_graph(graph, Options(target=INDUCTOR)).clones) == clones


PARTS: dict[str, Callable[[Tensor], Tensor]] = {
    "a tile": lambda x: x[1:-1, 1:-1],
    "a tile of a tile": lambda x: x[1:, 1:][:-1, 1:],
    "one of two": lambda x: x.unflatten(1, (-1, 2))[..., 0],
    "pairs, turned": lambda x: x.view(x.shape[0], -1, 2).permute(1, 0, 2)[1:],
    "columns": lambda x: x.t()[1:],
    "every other row": lambda x: x[1::2],
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_an_input_with_gaps(name: str) -> None:
    """Written by an operator, and then by a store; what lies beside them is not copied."""

    def program(x: Tensor, by: Tensor) -> Tensor:
        part = PARTS[name](x)
        ops.scale(part, by)
        part.add_(1)
        return by + 1

    x = arange(140).double().view(10, 14)[:, 1:13]
    graph = functional(program, x, torch.full((), 2.0, dtype=torch.double), dynamic=True)[0].graph
    assert analyze_graph(graph, Options(target=INDUCTOR)).clones == []


@pytest.mark.parametrize(("dynamic", "count"), [(False, 2), (True, 0)])
def test_with_numbers_alone_nothing_guards_that_they_do_not_overlap(dynamic: bool, count: int) -> None:
    graph = functional(kept_in_first, *halves(), dynamic=dynamic)[0].graph
    assert len(shared_inputs(graph)) == count


def test_they_are_right_in_later_calls() -> None:
    """The guard compiles anew what overlaps."""
    torch.compiler.reset()
    with fresh_inductor_cache():
        compiled = torch.compile(rotated, fullgraph=True, dynamic=True, options=inductor_options())
        for rows, second in ((6, 4), (9, 4), (9, 2)):
            expected, actual = columns(rows, second), columns(rows, second)
            result = rotated(*expected)
            torch.testing.assert_close(compiled(*actual), result)
            torch.testing.assert_close(actual, expected)
    torch.compiler.reset()


def test_a_value_is_computed_in_one_of_them() -> None:
    graph = functional(kept_in_first, *halves(), dynamic=True)[0].graph
    reinplace_graph(graph, Options(target=INDUCTOR))
    assert computed_in_inputs.compute(graph) == 1


def test_a_view_of_an_input_with_gaps_that_was_made_before_a_store() -> None:
    """AOTAutograd names its bytes by the strides of the input, and gives the operator what was stored."""

    def program(x: Tensor, by: Tensor) -> Tensor:
        rows, turned = x[3:], x.t()[1:]
        x.mul_(3)
        ops.scale(rows, by)
        ops.scale(turned, by)
        return by + 1

    def given(rows: int, columns: int, gap: int) -> tuple[Tensor, Tensor]:
        whole = arange(rows, columns + gap).double()
        return whole[:, gap // 2 :][:, :columns], torch.full((), 2.0, dtype=torch.double)

    torch.compiler.reset()
    with fresh_inductor_cache():
        compiled = torch.compile(program, fullgraph=True, dynamic=True, options=inductor_options())
        for shape in ((8, 12, 3), (6, 9, 3), (7, 7, 2), (9, 11, 0)):
            expected, actual = given(*shape), given(*shape)
            program(*expected)
            compiled(*actual)
            assert torch.equal(actual[0], expected[0]), shape
    torch.compiler.reset()
