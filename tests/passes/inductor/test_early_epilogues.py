"""Epilogues that run before the end: where they may, and what becomes of it by ``policy="peak"``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import inductor_options, verify
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.mend import epilogues
from pytest_reinplace.passes.inductor.schedule import attempts, check
from pytest_reinplace.passes.inductor.schedule.attempts import Attempt, Tried
from pytest_reinplace.passes.inductor.schedule.cost import Cost
from pytest_reinplace.passes.oracle.call import peak

from ..trace import arange, functional

Tensor = torch.Tensor
aten: Any = torch.ops.aten
SIZE = 16


def square() -> Tensor:
    return (torch.arange(float(SIZE * SIZE)) % 7).view(SIZE, SIZE)


def moved(fn: Callable[..., Any], *args: Any) -> list[str]:
    """Return behind which nodes epilogues of a program come; the graph does the same as before."""
    gm, inputs = functional(fn, *args)
    expected = copy.deepcopy(gm)
    places = epilogues.early(gm.graph)
    for epilogue, place in places.items():
        place.append(epilogue)
    gm.graph.lint()
    gm.recompile()
    verify.assert_equivalent(expected, gm, inputs)
    return [str(place) for place in places.values()]


def updates(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    return y @ y


def read_before(x: Tensor, y: Tensor) -> Tensor:
    old = x @ y
    x.mul_(2)
    return (old @ y).cos()


def read_through_a_view(x: Tensor, y: Tensor) -> Tensor:
    old = x[0].sin()
    x.mul_(2)
    return y @ y + old


def at_the_end(x: Tensor, y: Tensor) -> None:
    x.copy_(x @ y)


def returned(x: Tensor, y: Tensor) -> list[Tensor]:
    x.mul_(2)
    return [x[0], y @ y]


@pytest.mark.parametrize(
    ("fn", "places"),
    [
        (updates, ["mul"]),
        (read_before, ["mul"]),
        (read_through_a_view, ["mul"]),
        (at_the_end, []),
        (returned, ["mul"]),
    ],
)
def test_it_comes_behind_the_value_and_all_that_is_given_the_input(
    fn: Callable[..., Any], places: list[str]
) -> None:
    assert moved(fn, square(), square() + 1) == places


def stored(b: GraphBuilder, given: Any, value: Any) -> Any:
    node = b.graph.call_function(aten.copy_.default, (given, value))
    node.meta["val"] = given.meta["val"]
    return node


def test_a_reader_behind_the_value_is_waited_for() -> None:
    b = GraphBuilder()
    x, y = b.placeholder(square()), b.placeholder(square())
    value = b.call(aten.mul.Tensor, y, 2)
    row = b.call(aten.select.int, x, 0, 0)
    old = b.call(aten.mm.default, y, y)
    read = b.call(aten.sin.default, row)
    product = b.call(aten.mm.default, old, y)
    epilogue = stored(b, x, value)
    b.graph.output((product, read))
    assert epilogues.early(b.graph) == {epilogue: read}


def test_inputs_come_first_in_a_graph() -> None:
    b = GraphBuilder()
    x, y = b.placeholder(square()), b.placeholder(square())
    product = b.call(aten.mm.default, y, y)
    stored(b, x, y)
    b.graph.output((product,))
    assert epilogues.early(b.graph) == {}


@pytest.mark.parametrize("through_a_view", [False, True])
@pytest.mark.parametrize("of_a_view", [False, True])
def test_what_is_written_later_is_stored_later(of_a_view: bool, through_a_view: bool) -> None:
    b = GraphBuilder()
    x, y = b.placeholder(square()), b.placeholder(square())
    value = b.call(aten.mul.Tensor, y, 2)
    target = b.call(aten.select.int, value, 0, 0) if through_a_view else value
    turned = b.call(aten.permute.default, value, [1, 0])
    other = b.call(aten.mm.default, y, y)
    write = b.graph.call_function(aten.sin_.default, (target,))
    write.meta["val"] = target.meta["val"]
    product = b.call(aten.mm.default, other, y)
    epilogue = stored(b, x, turned if of_a_view else value)
    b.graph.output((product,))
    assert epilogues.early(b.graph) == {epilogue: write}


def test_inputs_that_share_bytes_are_written_at_the_end() -> None:
    b = GraphBuilder()
    storage = arange(8, 4)
    x, y = b.placeholder(storage[:4]), b.placeholder(storage[2:6])
    value = b.call(aten.mul.Tensor, x, 2)
    read = b.call(aten.neg.default, y)
    stored(b, x, value)
    b.graph.output((read,))
    assert epilogues.early(b.graph) == {}


def test_what_a_collective_is_given_is_written_at_the_end() -> None:
    b = GraphBuilder()
    x, y = b.placeholder(square()), b.placeholder(square())
    reduced = b.graph.call_function(torch.ops._c10d_functional.all_reduce.default, (x, "sum", "0"))
    reduced.meta["val"] = x.meta["val"]
    value = b.call(aten.mul.Tensor, y, 2)
    product = b.call(aten.mm.default, y, y)
    stored(b, x, value)
    b.graph.output((product, reduced))
    assert epilogues.early(b.graph) == {}


def test_what_is_in_its_place_already_stays_and_the_others_keep_their_order() -> None:
    b = GraphBuilder()
    x, y, z = (b.placeholder(square()) for _ in range(3))
    doubled, negated = b.call(aten.mul.Tensor, z, 2), b.call(aten.neg.default, z)
    first = stored(b, x, doubled)
    product = b.call(aten.mm.default, z, z)
    second, third = stored(b, y, negated), stored(b, x, doubled)
    b.graph.output((product,))
    places = epilogues.early(b.graph)
    assert places == {second: negated, third: first}
    for epilogue, place in places.items():
        place.append(epilogue)
    assert [node.target for node in b.graph.nodes if node.op == "call_function"] == [
        *(aten.mul.Tensor, aten.neg.default, aten.copy_.default, aten.copy_.default, aten.copy_.default),
        aten.mm.default,
    ]


# -- in attempts ------------------------------------------------------------------------------------


def turned(weights: list[Tensor], averages: list[Tensor], squares: list[Tensor], grad: Tensor) -> Tensor:
    """Moments of several weights in a basis: by one kernel at the end, all products are held until then."""
    for weight, average, square in zip(weights, averages, squares, strict=True):
        product = torch.mm(torch.mm(weight.t(), grad), weight)
        average.lerp_(product, 0.1)
        square.mul_(0.9).addcmul_(product, product, value=0.1)
        weight.sub_(torch.mm(weight, average / (square.sqrt() + 1)) * 0.01)
    return grad.sum()


def held(policy: Any) -> int:
    given: list[Any] = [[square() / 9 + i for i in range(3)] for _ in range(3)] + [square()]
    expected = copy.deepcopy(given)
    turned(*expected)
    torch.compiler.reset()
    with fresh_inductor_cache():
        fast = torch.compile(turned, fullgraph=True, options=inductor_options(policy=policy))
        fast(*given)
    torch.testing.assert_close(given, expected)
    return peak(lambda *given: [fast(*given)], given)


@pytest.mark.usefixtures("quick")
def test_less_is_held_by_policy_peak() -> None:
    assert held("peak") < held("memory")


@pytest.mark.usefixtures("quick")
def test_where_it_makes_the_schedule_wrong_the_one_before_is_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[bool] = []

    def problem(nodes: list[Any]) -> str:
        tried.append("stores early" in attempts.now().changes)
        return "it is late" if tried[-1] else ""

    monkeypatch.setattr(check, "problem", problem)
    held("peak")
    assert tried == [False, True, False] and "without writes in place" not in caplog.text


CHEAP, DEAR = Cost(peak=4, moved=4, waiting=2), Cost(peak=8, moved=4, waiting=3)


@pytest.mark.parametrize(
    ("attempt", "cost", "changes", "is_last"),
    [
        (Attempt(untried=("speed",)), DEAR, ("speed",), False),
        (Attempt(untried=("speed",)), None, None, False),
        (Attempt(("speed",), cheapest=Tried((), DEAR)), CHEAP, None, False),
        (Attempt(("speed",), cheapest=Tried((), CHEAP)), CHEAP, None, False),
        (Attempt(("speed",), cheapest=Tried((), CHEAP)), DEAR, (), True),
        (Attempt(("speed",), cheapest=Tried((), CHEAP)), None, (), True),
        (Attempt(untried=("stores early",)), DEAR, None, False),
        (Attempt(untried=("stores early",)), CHEAP, ("stores early",), False),
        (Attempt(untried=("stores early",)), Cost(peak=0, moved=4), None, False),
        (Attempt(untried=("stores early",), by_peak=True), DEAR, ("stores early",), False),
        (Attempt(("speed",), cheapest=Tried((), CHEAP), untried=("stores early",)), None, (), True),
        (Attempt(("stores early",), cheapest=Tried((), CHEAP)), CHEAP, (), True),
        (Attempt(("stores early",), cheapest=Tried((), CHEAP), by_peak=True), CHEAP, None, False),
        (Attempt(("stores early",), cheapest=Tried((), DEAR)), CHEAP, None, False),
        (Attempt(("stores early",), cheapest=Tried((), DEAR)), Cost(peak=4, moved=9), (), True),
        (Attempt(("stores early",), cheapest=Tried((), CHEAP)), Cost(peak=5, moved=1), (), True),
        (
            Attempt(("speed",), cheapest=Tried((), CHEAP), untried=("stores early",)),
            DEAR,
            ("stores early",),
            False,
        ),
        (
            Attempt(("speed",), cheapest=Tried((), DEAR), untried=("stores early",)),
            CHEAP,
            ("speed", "stores early"),
            False,
        ),
        (Attempt(("speed", "stores early"), cheapest=Tried(("speed",), CHEAP)), DEAR, ("speed",), True),
    ],
)
def test_what_is_tried_next(attempt: Attempt, cost: Cost | None, changes: Any, is_last: bool) -> None:
    following = attempt.following(cost)
    if changes is None:
        assert following is None
    else:
        assert following is not None
        assert (following.changes, following.is_last) == (changes, is_last)
