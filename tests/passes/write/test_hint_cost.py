"""Hints are searched for in about as many steps as the graph has nodes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_reinplace.passes import Report, analyze
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.reinplacing.hint import Hints

aten: Any = torch.ops.aten


def hinted(n: int) -> tuple[Report, int]:
    """Return the report of n clones, and how many nodes the graph has.

    Each old value is read far behind all writes, by what depends on them all.
    """
    build = GraphBuilder()
    x, value = build.placeholder(torch.arange(8.0)), build.placeholder(torch.ones(1))
    slot = build.placeholder(torch.tensor([2]))
    olds = [build.call(aten.mul.Tensor, x, k) for k in range(n)]
    news = [build.call(aten.index_put.default, old, [slot], value) for old in olds]
    total = x
    for one in (*news, *olds):
        total = build.call(aten.sub.Tensor, total, one)
    gm = build.finished([total])
    return analyze(gm), len(gm.graph.nodes)


def test_a_copy_that_is_needed_is_told_as_meant() -> None:
    report, _ = hinted(8)
    assert len(report.clones) == 8
    assert all("are both needed" in outcome.hint for outcome in report.outcomes)


def test_many_clones_cost_no_square(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    may_look_at = Hints.may_look_at
    monkeypatch.setattr(Hints, "may_look_at", lambda self, n: may_look_at(self, n) and not looked.append(n))
    report, size = hinted(400)
    assert len(report.clones) == 400
    assert size < sum(looked) <= 2000 + size
    assert report.outcomes[-1].hint == report.outcomes[-1].reason.hint  # type: ignore[union-attr]
