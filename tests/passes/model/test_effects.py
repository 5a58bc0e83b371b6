"""Operators with effects, in graphs that AOTAutograd made: their order stays, and they read like others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._library.effects import EffectType
from torch.fx import GraphModule
from torch.library import custom_op

from pytest_reinplace.passes import Reason, Report, inductor_options, observe, reinplace
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange, functional, ops

Tensor = torch.Tensor

aten = torch.ops.aten
seen: list[Any] = []


@custom_op("reinplace_effects::tell", mutates_args=())
def tell(x: Tensor) -> None:
    """Tell the world what it sees, when it sees it."""
    seen.append(x.sum().item())


@custom_op("reinplace_effects::note", mutates_args=())
def note(x: Tensor) -> Tensor:
    """Tell the world, and return something."""
    seen.append(-x.sum().item())
    return x.sum()


@custom_op("reinplace_effects::bump", mutates_args=("x",))
def bump(x: Tensor) -> None:
    """Write, and tell that it did."""
    seen.append("bump")
    x.add_(1)


@tell.register_fake
def _(x: Tensor) -> None:
    return None


@note.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(())


for effectful in (tell, note, bump):
    effectful.register_effect(EffectType.ORDERED)

effects = torch.ops.reinplace_effects


def told(run: Callable[..., Any], inputs: list[Any]) -> list[Any]:
    """Return what the world was told in the course of a run."""
    seen.clear()
    run(*[i.clone() if isinstance(i, Tensor) else i for i in inputs])
    return list(seen)


def judged(program: Callable[..., Any], *inputs: Tensor, v2: bool = True) -> tuple[Report, GraphModule]:
    specification, given = functional(program, *inputs, v2=v2)
    gm, _ = functional(program, *inputs, v2=v2)
    report = reinplace(gm)
    assert_equivalent(specification, gm, given)
    expected = told(specification, given)
    assert told(gm, given) == expected and expected
    return report, gm


def between_writes(x: Tensor, by: Tensor) -> Tensor:
    effects.note(x)
    ops.scale(x, by)
    effects.tell(x)
    x[1] = by
    return effects.note(x[0])


def writing_has_an_effect(x: Tensor, by: Tensor) -> Tensor:
    effects.tell(x)
    effects.bump(x)
    effects.tell(x)
    effects.bump(x[0])
    return x.sum()


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("program", [between_writes, writing_has_an_effect], ids=lambda p: str(p.__name__))
def test_writes_between_effects_are_in_place(program: Callable[..., Any], v2: bool) -> None:
    report, gm = judged(program, arange(4, 4), arange(4), v2=v2)
    assert report.clones == [] and len(report.reinplaced) >= 2
    assert not any("auto_functionalized" in str(n.target) for n in gm.graph.nodes)
    calls = gm.graph.find_nodes(op="call_function", target=torch.ops.higher_order.with_effects)
    tokens = [call.args[0] for call in calls]
    # each call takes the token of the call before it
    assert [t.args[0] for t in tokens[1:]] == calls[:-1] and tokens[0].op == "placeholder"


@pytest.mark.parametrize(
    ("reader", "clones"),
    [(effects.tell, ["aten::clone.self"]), (aten.sum.default, [])],
    ids=["effect", "pure"],
)
def test_an_effect_does_not_move_to_save_a_copy(reader: Any, clones: list[str]) -> None:
    """Its twin without an effect is run before the write instead."""

    def program(x: Tensor, by: Tensor) -> Tensor:
        effects.tell(by)
        y = x + 1
        old = y.clone()
        ops.scale(y, by)
        read = reader(old)
        return y * 2 if read is None else y * read

    report, _ = judged(program, arange(4, 4), arange(4))
    assert report.clones == clones
    assert [o.reason for o in report.outcomes if not o.reinplaced] == [Reason.OVERWRITTEN] * len(clones)


def test_a_pure_reader_crosses_no_effect() -> None:
    """What is told in between could depend on it, for all that is known."""

    def program(x: Tensor, by: Tensor) -> Tensor:
        y = x + 1
        old = y.clone()
        ops.scale(y, by)
        effects.tell(by)
        return y * old.sum()

    assert judged(program, arange(4, 4), arange(4))[0].clones == ["aten::clone.self"]


def test_an_effectful_operator_with_an_in_place_form_stays_functional() -> None:
    """Torch runs no operator with effects that aliases its operands: there is nothing to rewrite it to."""
    with pytest.raises(AssertionError, match="aliasing"):
        torch.ops.higher_order.with_effects(torch.empty(0), aten.digamma_.default, torch.ones(2))


def test_inductor_keeps_the_order() -> None:
    torch._dynamo.reset()
    reports: list[Report] = []
    options = {**inductor_options(), "fx_graph_cache": False}
    with observe(lambda report, _: reports.append(report)), torch.no_grad():
        fast = torch.compile(between_writes, fullgraph=True, options=options)
        assert told(fast, [arange(4, 4), arange(4)]) == told(between_writes, [arange(4, 4), arange(4)])
    assert reports[0].clones == []
