"""Views of another dtype: those of an input, and those of another width of a whole, are views to Inductor."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import Reason, inductor_options, observe
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph
from pytest_reinplace.passes.report import Report

from ..trace import ops

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("dtype", "is_input", "reason"),
    [
        (torch.float32, True, None),
        (torch.float32, False, Reason.LOWERING),
        (torch.int16, True, Reason.LOWERING),  # of another width: Inductor calls the operator
        (torch.int16, False, None),
    ],
)
def test_what_is_written_behind_it(dtype: torch.dtype, is_input: bool, reason: Reason | None) -> None:
    """``scale(cache.view(dtype)); return -cache``."""
    b = GraphBuilder()
    by = b.placeholder(torch.ones(1))
    x = b.placeholder(torch.arange(12, dtype=torch.int32))
    cache = x if is_input else b.call(aten.mul.Tensor, x, 3)
    new = b.v1(ops.scale.default, x=b.call(aten.view.dtype, cache, dtype), by=by)[-1]
    back = b.call(aten.view.dtype, new, torch.int32)
    if is_input:
        b.call(aten.copy_.default, cache, back)
    gm = b.finished([b.call(aten.neg.default, back)])
    (outcome, *_) = analyze_graph(gm.graph, Options(target=INDUCTOR)).outcomes
    assert (outcome.label, outcome.reason) == ("reinplace_test::scale.x", reason)


given: list[int] = []


@torch.library.custom_op("reinplace_test::double_at", mutates_args=("x",))
def double_at(x: torch.Tensor) -> None:
    """Doubles a tensor and notes where it begins."""
    given.append(x.data_ptr())
    x.mul_(2)


def written_as_floats(cache: torch.Tensor) -> torch.Tensor:
    """As an FP8 cache that is kept as bytes: https://github.com/pytorch/pytorch/issues/173781."""
    double_at(cache.view(torch.float32))
    cache[1] = 7
    double_at(cache.view(torch.float32))
    return cache.sum()


def test_an_operator_is_given_the_input_itself() -> None:
    cache = torch.arange(1 << 30, (1 << 30) + 16, dtype=torch.int32).view(4, 4)
    expected = cache.clone()
    result = written_as_floats(expected)
    reports: list[Report] = []
    with fresh_inductor_cache(), observe(lambda report, _: reports.append(report)):
        compiled = torch.compile(written_as_floats, fullgraph=True, options=inductor_options())
        given.clear()
        assert torch.equal(compiled(cache), result)
    assert torch.equal(cache, expected)
    assert given == [cache.data_ptr()] * 2
    assert [report.clones for report in reports] == [[]]


@pytest.mark.parametrize("is_gapped", [False, True])
def test_of_what_is_itself_a_view_an_operator_of_another_width_is_given_a_copy(is_gapped: bool) -> None:
    """``scale(cache[4:8].view(int16))``: what is copied is the part, and the cache is written in place."""
    b = GraphBuilder()
    by, new = b.placeholder(torch.ones(1)), torch.ops.aten.slice_scatter.default
    cache = b.placeholder(torch.arange(48, dtype=torch.int32).view(12, 4))
    part = b.call(aten.slice.Tensor, cache, int(is_gapped), 0, 2)
    written = b.v1(ops.scale.default, x=b.call(aten.view.dtype, part, torch.int16), by=by)[-1]
    back = b.call(aten.view.dtype, written, torch.int32)
    b.call(aten.copy_.default, cache, b.call(new, cache, back, int(is_gapped), 0, 2))
    gm = b.finished([b.call(aten.neg.default, by)])
    outcomes = analyze_graph(gm.graph, Options(target=INDUCTOR)).outcomes
    assert [(o.label, o.reason) for o in outcomes][:2] == [
        ("reinplace_test::scale.x", Reason.LOWERING),
        ("aten::slice_scatter.self", None),
    ]


def packed(cache: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As scales that are kept behind the bytes of a row: a part of a cache seen in another width."""
    scales = cache[:, 8:16].view(torch.float32)
    ops.scale(scales, rows[0])
    whole = cache.view(torch.float32)
    ops.scale(whole, rows[1])
    cache[0] = 7
    return whole.sum(), cache[1].view(torch.int64) + 1


def packed_anew(cache: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same in a buffer that the program makes."""
    return packed(cache + 1, rows)


@pytest.mark.parametrize("program", [packed, packed_anew])
def test_views_of_another_width_are_written_right(program: Callable[..., Any]) -> None:
    def inputs() -> list[torch.Tensor]:
        return [torch.arange(128, dtype=torch.uint8).view(8, 16), torch.ones(2, 2)]

    expected, given = inputs(), inputs()
    result = program(*expected)
    actual = torch.compile(program, fullgraph=True, options=inductor_options())(*given)
    torch.testing.assert_close((actual, given), (result, expected))


@pytest.mark.parametrize("made", ["slice", "permuted", "input", "split", "computed"])
def test_what_inductor_may_copy_is_not_written_through(made: str) -> None:
    """Each view lacks one thing: ``scale(view)`` is a clone."""
    b = GraphBuilder()
    by, x = b.placeholder(torch.ones(1)), b.placeholder(torch.arange(24, dtype=torch.int32).view(2, 3, 4))
    computed = b.call(aten.mul.Tensor, x, 3)
    if made == "slice":
        view = b.call(aten.view.dtype, b.call(aten.slice.Tensor, computed, 0, 1, 2), torch.int16)
    elif made == "permuted":
        laid_out = b.call(aten.mul.Tensor, b.call(aten.permute.default, x, [1, 0, 2]), 3)
        view = b.call(aten.view.dtype, laid_out, torch.int16)
    elif made == "input":
        view = b.call(aten.slice.Tensor, b.call(aten.view.dtype, x, torch.int16), 0, 0, 1)
    elif made == "split":
        view = b.call(
            operator.getitem, b.call(aten.split.Tensor, b.call(aten.view.dtype, x, torch.int16), 1), 0
        )
    else:
        view = b.call(aten.slice.Tensor, b.call(aten.view.dtype, computed, torch.float32), 0, 0, 1)
    new = b.v1(ops.scale.default, x=view, by=by)[-1]
    gm = b.finished([b.call(aten.neg.default, new)])
    (outcome, *_) = analyze_graph(gm.graph, Options(target=INDUCTOR)).outcomes
    assert (outcome.label, outcome.reason) == ("reinplace_test::scale.x", Reason.LOWERING)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.unfold(0, 2, 2)[0],
        lambda x: x.view(2, 4, 4).diagonal(0, 1, 2),
        lambda x: x.view(4, 2, 4)[:, 1],
    ],
    ids=["windows", "diagonals", "rows"],
)
def test_what_is_written_of_a_view_whose_strides_inductor_does_not_know(
    view: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """Behind windows and diagonals Inductor makes a copy of a view of another dtype."""

    def program(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        ops.scale(view(x).view(torch.int32).transpose(0, 1), by)
        return x.sum()

    x, by = torch.arange(32.0).view(8, 4), torch.tensor([2], dtype=torch.int32)
    expected, by_expected = x.clone(), by.clone()
    torch.compiler.reset()
    result = torch.compile(program, fullgraph=True, options=inductor_options())(x, by)
    assert torch.equal(result, program(expected, by_expected))
    assert torch.equal(x, expected)
