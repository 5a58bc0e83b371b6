"""Outputs that AOTAutograd makes anew from an input share its storage for nobody."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch._guards import TracingContext, tracing
from torch._inductor.utils import fresh_inductor_cache
from torch.fx import GraphModule

from pytest_reinplace.passes import Reason, inductor_options
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor._torch import regenerated_outputs
from pytest_reinplace.passes.inductor.mend.returned_views import return_inputs
from pytest_reinplace.passes.inductor.stage import ReinplacePass, observe
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph

from ..trace import arange, ops

aten = torch.ops.aten
Tensor = torch.Tensor


class PlainAOTOutput:
    """An output as AOTAutograd describes it: the result of this number."""

    def __init__(self, idx: int) -> None:
        self.idx = idx


class GradAOTOutput(PlainAOTOutput):
    """An output of a backward graph."""


class SubclassGetAttrAOTOutput(PlainAOTOutput):
    """A part of a tensor subclass."""


def returned(*descriptions: Any, twice: bool = False) -> GraphModule:
    """``scale(x, y); return x[:2]``."""
    b = GraphBuilder()
    x, y = b.placeholder(arange(4)), b.placeholder(arange(4))
    (_, new) = b.v2(ops.scale.default, {"x": (x, x)}, by=y)
    b.call(aten.copy_.default, x, new)
    part = b.call(aten.slice.Tensor, new, 0, 0, 2)
    gm = b.finished([part, part] if twice else [part])
    (output,) = gm.graph.find_nodes(op="output")
    output.meta["desc"] = list(descriptions)
    return gm


def result(kind: str) -> Any:
    """A result of the program, as AOTAutograd tells of it."""
    return types.SimpleNamespace(
        output_type=types.SimpleNamespace(name=kind), base_idx=0, requires_grad=False
    )


def reasons(gm: GraphModule, kinds: Sequence[str] | None) -> set[Reason | None]:
    """Return why something is cloned, where the results of the program are of these kinds."""
    context = TracingContext(None)
    if kinds is not None:
        context.fw_metadata = types.SimpleNamespace(output_info=list(map(result, kinds)))  # type: ignore[assignment]
    with tracing(context):
        return_inputs(gm.graph, regenerated_outputs(gm.graph))
        report = analyze_graph(gm.graph, Options(target=INDUCTOR))
    return {o.reason for o in report.outcomes if not o.reinplaced}


@pytest.mark.parametrize("kind", ["alias_of_input", "is_input"])
def test_a_view_of_an_input_that_is_made_anew_is_in_place(kind: str) -> None:
    assert reasons(returned(PlainAOTOutput(0)), [kind]) == set()
    assert reasons(returned(PlainAOTOutput(1)), ["non_alias", kind]) == set()


@pytest.mark.parametrize(
    ("description", "kinds"),
    [
        (PlainAOTOutput(0), None),
        (PlainAOTOutput(0), ["non_alias"]),
        (PlainAOTOutput(0), ["custom_function_view"]),
        (PlainAOTOutput(0), ["alias_of_intermediate"]),
        (PlainAOTOutput(1), ["alias_of_input", "non_alias"]),
        (GradAOTOutput(0), ["alias_of_input"]),
        (SubclassGetAttrAOTOutput(0), ["alias_of_input"]),
    ],
)
def test_what_the_caller_gets_as_it_is_shares_nothing(description: Any, kinds: list[str] | None) -> None:
    assert reasons(returned(description), kinds) == {Reason.ESCAPES}


def test_a_graph_that_says_nothing_of_its_outputs_shares_nothing() -> None:
    assert reasons(returned(), ["alias_of_input"]) == {Reason.ESCAPES}


def test_one_value_that_is_returned_both_ways_is_kept_apart() -> None:
    both = PlainAOTOutput(0), PlainAOTOutput(1)
    assert reasons(returned(*both, twice=True), ["alias_of_input", "is_input"]) == set()
    assert reasons(returned(*both, twice=True), ["alias_of_input", "non_alias"]) == {Reason.ESCAPES}


def test_a_cache_knows_them_apart() -> None:
    context = TracingContext(None)
    with tracing(context):
        before = ReinplacePass().uuid()
        told = types.SimpleNamespace(output_info=[result("is_input")], input_info=[])
        context.fw_metadata = told  # type: ignore[assignment]
        assert ReinplacePass().uuid() != before


def test_a_compiled_program_returns_views_of_what_it_was_given() -> None:
    """In training there is more in the graph's outputs than what the program returns."""

    def program(x: Tensor, y: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        total = (w.sin() * w).sum()
        ops.scale(x, y)
        return x[2:], total, x.t(), x

    cloned: list[str] = []
    torch.compiler.reset()
    for shift in (0, 1):
        x, y = torch.arange(17.0)[shift : 16 + shift].view(4, 4), arange(4)
        expected = [x.clone(), y, torch.ones(3, requires_grad=True)]
        want = program(*expected)
        actual = [x, y, torch.ones(3, requires_grad=True)]
        with fresh_inductor_cache(), observe(lambda report, _: cloned.extend(report.clones)):
            found = torch.compile(program, fullgraph=True, options=inductor_options())(*actual)
        for one, other in zip((*want, *expected), (*found, *actual), strict=True):
            assert torch.equal(one, other)
        found[0].fill_(-1)
        assert bool((x[2:] == -1).all()) and bool((found[2].t() == x).all()) and found[3] is x
    torch.compiler.reset()
    assert cloned == []


def test_a_compiled_program_holds_what_it_was_given_once() -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x.div_(y).add_(1)
        y.copy_(x.t() * 2)
        return x[1:], y.t()[:2], x

    given, expected = ([arange(6, 4)[1:5], arange(4, 4) + 1] for _ in range(2))
    want = program(*expected)
    torch.compiler.reset()
    with fresh_inductor_cache():
        found = torch.compile(program, fullgraph=True, options=inductor_options())(*given)
    torch.compiler.reset()
    for one, other in zip((*want, *expected), (*found, *given), strict=True):
        torch.testing.assert_close(other, one)
    found[0].zero_()
    assert not given[0][1:].any() and found[2] is given[0]
