"""Long graphs of refusals by many readers: fewer readers are looked at, and nothing is decided wrongly."""

from __future__ import annotations

import torch
from torch.fx import GraphModule

from pytest_reinplace.passes import analyze, reinplace
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph
from pytest_reinplace.passes.verify import assert_equivalent

aten = torch.ops.aten


def fan(count: int) -> tuple[GraphModule, list[torch.Tensor]]:
    """Return wrappers that each write a row of one and the same value."""
    build = GraphBuilder()
    given, other = (
        build.placeholder(torch.arange(count * 4).view(count, 4)),
        build.placeholder(torch.arange(4)),
    )
    base = build.call(aten.neg.default, given)
    outputs = []
    for i in range(count):
        row = build.call(aten.select.int, base, 0, i)
        written = build.v2(adversary.operator("mix"), {"x": (base, row)}, other=other)[-1]
        outputs.append(build.call(aten.sum.default, written))
    return build.finished(outputs), build.inputs


def late(count: int, readers: int) -> tuple[GraphModule, list[torch.Tensor]]:
    """Return wrappers on values of their own, each read so often after it was written."""
    build = GraphBuilder()
    given, other = build.placeholder(torch.arange(64)), build.placeholder(torch.arange(64) * 3)
    outputs = []
    for _ in range(count):
        value = build.call(aten.neg.default, given)
        outputs.append(build.v1(adversary.operator("mix"), x=value, other=other)[-1])
        outputs += [build.call(aten.sum.default, value) for _ in range(readers)]
    return build.finished([build.call(aten.sum.default, o) for o in outputs]), build.inputs


def test_each_refusal_names_readers_and_late_ones_few() -> None:
    gm, inputs = fan(150)
    outcomes = analyze(gm).outcomes
    counts = [len(o.blockers) for o in outcomes]
    assert counts[0] == 64 and counts[120] == 4 and counts[-1] == 0
    assert [o.reinplaced for o in outcomes] == [False] * 149 + [True]
    rewritten, _ = fan(150)
    reinplace(rewritten)
    assert_equivalent(gm, rewritten, inputs)


def test_readers_that_are_not_looked_at_are_not_forgotten() -> None:
    gm, inputs = late(260, 20)
    rewritten, _ = late(260, 20)
    report = reinplace(rewritten)
    assert_equivalent(gm, rewritten, inputs)
    assert report.outcomes[0].reinplaced and len(report.outcomes[0].moved) == 20


def test_many_scatters_of_one_value_are_none_that_is_computed_on_the_way() -> None:
    def scattered(count: int) -> GraphModule:
        build = GraphBuilder()
        given, other = build.placeholder(torch.arange(200).view(50, 4)), build.placeholder(torch.arange(4))
        base = build.call(aten.neg.default, given)
        mine = [build.call(aten.select_scatter.default, base, other, 0, i) for i in range(count)]
        return build.finished([build.call(aten.sum.default, m) for m in mine])

    one = analyze_graph(scattered(1).graph, Options(target=INDUCTOR)).outcomes
    assert [o.fused for o in one] == [True]
    many = analyze_graph(scattered(40).graph, Options(target=INDUCTOR)).outcomes
    assert [o.fused for o in many] == [False] * 40
