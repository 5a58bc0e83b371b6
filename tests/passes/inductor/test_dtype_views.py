"""A view of another dtype is one to Inductor where it lies in an input, and a conversion elsewhere."""

from __future__ import annotations

import pytest
import torch

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
        (torch.int16, True, Reason.LOWERING),  # of another width: a kernel makes it
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
    with observe(lambda report, _: reports.append(report)):
        compiled = torch.compile(written_as_floats, fullgraph=True, options=inductor_options())
        given.clear()
        assert torch.equal(compiled(cache), result)
    assert torch.equal(cache, expected)
    assert given == [cache.data_ptr()] * 2
    assert [report.clones for report in reports] == [[]]
