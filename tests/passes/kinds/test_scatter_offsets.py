"""Scatters that stay functional on what was moved: who names bytes by an offset finds them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import reinplace_graph

from ..trace import ops

aten: Any = torch.ops.aten


def inputs() -> list[torch.Tensor]:
    return [torch.arange(16.0)[4:12], torch.ones(1), torch.full((2,), 7.0)]


@pytest.mark.parametrize("names_itself", [False, True])
def test_a_scatter_of_a_clone_that_begins_elsewhere(names_itself: bool) -> None:
    b = GraphBuilder()
    x, by, part = map(b.placeholder, inputs())
    (_, new) = b.v2(ops.scale.default, {"x": (x, x)}, by=by)
    if names_itself:
        read = b.call(aten.as_strided_scatter.default, new, part, [2], [1], 5)
    else:
        whole = b.call(aten.slice_scatter.default, new, part, 0, 0, 2)
        read = b.call(aten.as_strided.default, whole, [2], [1], 5)
    gm = b.finished([b.call(aten.neg.default, x), new, b.call(aten.neg.default, read)])
    expected = gm(*inputs())
    report = reinplace_graph(gm.graph, Options())
    gm.recompile()
    assert not any(outcome.reinplaced for outcome in report.outcomes)
    torch.testing.assert_close(gm(*inputs()), expected)
