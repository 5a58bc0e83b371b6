"""Strides of dimensions of one: what is made of odd ones has others than its fake tensor says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes import Reason, Report, reinplace
from pytest_reinplace.passes._torch import hop
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.graph.find_layouts import known
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import reinplace_graph
from pytest_reinplace.passes.verify import assert_equivalent

from ..nested import twin
from ..ops.test_true_strides import given, overloads, results
from ..trace import arange

aten = torch.ops.aten
Tensor = torch.Tensor
ADD = "aten::index_add.self"


# -- what fake tensors say ---------------------------------------------------------------------


def usual() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.rand(6, 1), torch.rand(1, 6), torch.rand(1, 1), torch.rand(2, 1, 3)]


def odd() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.rand(6).as_strided((6, 1), (1, 6)), torch.rand(6).as_strided((1, 6), (1, 1))]


def calls(op: Any, operands: list[Tensor]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    for mine in operands:
        others = [torch.tensor(0.5), torch.rand(1), torch.rand(1, 1), torch.rand(6), torch.rand(mine.shape)]
        yield from given(op, [mine], others)


def lies(op: Any, operands: list[Tensor]) -> bool:
    """Return whether a result has other strides than its fake tensor, in any dimension."""
    return any(a.stride() != b.stride() for a, b in results(op, calls(op, operands)))


@pytest.mark.filterwarnings("ignore")
def test_fake_tensors_tell_all_strides_of_what_is_made_of_usual_ones() -> None:
    assert lies(aten.mul.Tensor, odd())  # or nothing was asked
    assert [str(op) for op in overloads() if lies(op, usual())] == []


# -- what is written in place ------------------------------------------------------------------


def made(b: GraphBuilder, x: Node) -> Node:
    """Compute something with a column of odd strides: its own is told to be 1, and is 6."""
    column = b.call(aten.permute.default, x, [1, 0])
    return b.call(aten.mul.Scalar, column, 3)


def added(b: GraphBuilder, x: Node) -> Node:
    """Add to a row; the functional form makes a contiguous tensor, whatever it is given."""
    return b.call(
        aten.index_add.default, x, 0, b.call(aten.arange.default, 1), b.call(aten.ones.default, [1, 1])
    )


def seen(b: GraphBuilder, x: Node) -> Node:
    """Look at the halves of numbers, which takes a last stride of 1."""
    return b.call(aten.neg.default, b.call(aten.view.dtype, x, torch.int16))


def held(b: GraphBuilder, output: Node) -> Report:
    gm = b.finished([output])
    after = twin(gm)
    report = reinplace(after)
    assert_equivalent(gm, after, b.inputs)
    return report


def row(b: GraphBuilder, *, is_odd: bool = True) -> Node:
    """Return a row whose transpose is a column of odd strides, or of usual ones."""
    x = b.placeholder(arange(1, 6).float())
    return b.call(aten.neg.default, x) if is_odd else b.call(aten.as_strided.default, x, [1, 6], [1, 1], 0)


@pytest.mark.parametrize("is_seen", [True, False])
@pytest.mark.parametrize("is_odd", [True, False])
def test_a_guess_is_not_written_where_somebody_may_notice(is_odd: bool, is_seen: bool) -> None:
    b = GraphBuilder()
    x = made(b, row(b, is_odd=is_odd))
    report = held(b, used(b, added(b, x), is_seen=is_seen))
    (outcome,) = (o for o in report.outcomes if o.label == ADD)
    assert outcome.reinplaced is not (is_odd and is_seen)
    assert outcome.reason is (Reason.LAYOUT if is_odd and is_seen else None)


def used(b: GraphBuilder, x: Node, *, is_seen: bool) -> Node:
    """Use a value, by its strides or not; those of another value are asked for anyway."""
    other = seen(b, b.call(aten.ones.default, [6, 1]))
    return seen(b, x) if is_seen else b.call(aten.add.Tensor, x, b.call(aten.sum.default, other))


def test_what_is_made_of_gaps_or_another_order_is_told() -> None:
    b = GraphBuilder()
    x = b.call(aten.permute.default, b.call(aten.neg.default, b.placeholder(arange(4, 6).float())), [1, 0])
    total = b.call(aten.sum.dim_IntList, x, [1], True)
    assert ADD in held(b, seen(b, added(b, total))).reinplaced


def test_what_has_no_dimension_of_one_is_no_guess() -> None:
    b = GraphBuilder()
    flat = b.call(aten.squeeze.dim, made(b, row(b)), 1)
    again = b.call(aten.unsqueeze.default, flat, 1)
    assert ADD in held(b, seen(b, added(b, again))).reinplaced


def test_a_wrapper_makes_what_it_would_have_copied() -> None:
    """Of its operand it takes all strides, as they are: the view works with both or with none."""
    b = GraphBuilder()
    x = b.call(aten.permute.default, made(b, row(b)), [1, 0])
    new = b.v1(adversary.operator("bump"), x=x)[-1]
    assert "reinplace_adversary::bump.x" in held(b, seen(b, new)).reinplaced


@pytest.mark.parametrize("is_odd", [True, False])
def test_what_a_wrapper_makes_of_its_other_operand_is_a_guess(is_odd: bool) -> None:
    """Seed 83036515 of the oracle: a copy that makes strides usual went, and the view did not work."""
    b = GraphBuilder()
    column = b.call(aten.permute.default, row(b, is_odd=is_odd), [1, 0])
    written = b.call(aten.neg.default, b.placeholder(arange(6, 1).float()))
    _, second, _ = b.v1(adversary.operator("fresh_pair"), x=written, other=column)
    new = b.call(aten.clone.default, second, memory_format=torch.contiguous_format)
    assert ("aten::clone.self" in held(b, seen(b, new)).reinplaced) is not is_odd


def test_kernels_of_inductor_have_the_strides_that_are_told() -> None:
    b = GraphBuilder()
    new = added(b, made(b, row(b)))
    gm = b.finished([b.call(aten.neg.default, new), b.call(aten.sym_stride.int, new, 1)])
    assert ADD in reinplace_graph(twin(gm).graph, Options(target=INDUCTOR)).reinplaced
    assert ADD not in reinplace_graph(twin(gm).graph, Options()).reinplaced


def test_dimensions_that_may_be_one_are_guessed() -> None:
    def program(x: Tensor) -> Tensor:
        return (x * 3).view(torch.int16)

    gm = make_fx(program, tracing_mode="symbolic")(torch.ones(4, 12)[:, :6])
    (multiplied,) = gm.graph.find_nodes(op="call_function", target=aten.mul.Tensor)
    assert known(gm.graph).of(gm.graph).of(multiplied).guessed
    shape_env = multiplied.meta["val"].fake_mode.shape_env
    before = list(shape_env.guards)
    known(gm.graph)
    assert shape_env.guards == before


# -- across calls ------------------------------------------------------------------------------


def called(b: GraphBuilder, x: Node, inner: GraphBuilder, *results: Node) -> Node:
    body = inner.finished([*results])
    target, values = torch.ops.higher_order.invoke_subgraph, tuple(r.meta["val"] for r in results)
    return b.item(b.called(target, (b.subgraph(body), "body", x), tuple(map(torch.empty_like, values))), 0)


@pytest.mark.parametrize("is_seen", [True, False])
@pytest.mark.parametrize("place", ["inside", "given", "returned"])
def test_a_guess_crosses_calls(place: str, is_seen: bool) -> None:
    """It is made inside and written there, given and written inside, or returned and written outside."""
    b = GraphBuilder()
    x = row(b)
    x = made(b, x) if place == "given" else x
    inner = GraphBuilder(b.fake_mode)
    value = inner.operand(x.meta["val"])
    value = value if place == "given" else made(inner, value)
    value = inner.call(aten.mul.Scalar, value, 2) if place == "given" else value
    value = value if place == "returned" else added(inner, value)
    result = called(b, x, inner, value)
    result = added(b, result) if place == "returned" else result
    report = held(b, used(b, result, is_seen=is_seen))
    (outcome,) = (o for o in report.outcomes if o.label == ADD)
    # What is returned may be asked for outside: nobody looks there whether it is.
    assert outcome.reinplaced is (place == "returned" and not is_seen)


def test_what_a_call_makes_of_usual_strides_is_told() -> None:
    b = GraphBuilder()
    x = b.call(aten.neg.default, b.placeholder(arange(6, 1).float()))
    inner = GraphBuilder(b.fake_mode)
    result = called(b, x, inner, inner.call(aten.neg.default, inner.operand(x.meta["val"])))
    assert ADD in held(b, seen(b, added(b, result))).reinplaced


def carrying(b: GraphBuilder) -> tuple[GraphModule, list[str]]:
    """Return a loop whose carry is told to be usual: after one iteration it is what was made of odd ones."""
    start = b.call(aten.neg.default, b.placeholder(arange(6, 1).float()))
    odd_one = b.call(aten.permute.default, row(b), [1, 0])
    test, step = GraphBuilder(b.fake_mode), GraphBuilder(b.fake_mode)
    looked_at, _ = (test.operand(n.meta["val"]) for n in (start, odd_one))
    go_on = test.finished(test.call(aten.lt.Scalar, test.call(aten.sum.default, looked_at), 100))
    carry, captured = (step.operand(n.meta["val"]) for n in (start, odd_one))
    scaled = step.call(aten.mul.Scalar, captured, 2)
    used = step.call(aten.mul.Scalar, carry, 3)
    body = step.finished([step.call(aten.sub.Tensor, scaled, used)])
    given_to = b.subgraph(go_on), b.subgraph(body), [start], [odd_one]
    call = b.called(hop("while_loop"), given_to, (torch.empty_like(start.meta["val"]),))
    return b.finished([seen(b, b.item(call, 0))]), [carry.name, used.name]


def test_a_loop_that_asks_whether_to_go_on_is_given_guesses() -> None:
    b = GraphBuilder()
    start, column = made(b, row(b)), b.call(aten.ones.default, [6, 1])
    test, step = GraphBuilder(b.fake_mode), GraphBuilder(b.fake_mode)
    halves = seen(test, added(test, test.call(aten.mul.Scalar, test.operand(start.meta["val"]), 2)))
    test.operand(column.meta["val"])
    go_on = test.finished(test.call(aten.lt.Scalar, test.call(aten.sum.default, halves), -1000000))
    carry, other = (step.operand(n.meta["val"]) for n in (start, column))
    body = step.finished([step.call(aten.add.Tensor, carry, other)])
    given_to = b.subgraph(go_on), b.subgraph(body), [start], [column]
    call = b.called(hop("while_loop"), given_to, (torch.empty_like(start.meta["val"]),))
    assert ADD not in held(b, b.call(aten.neg.default, b.item(call, 0))).reinplaced


def test_a_guess_is_carried_to_the_next_iteration() -> None:
    b = GraphBuilder()
    gm, names = carrying(b)
    (body,) = (m for m in gm.children() if m.graph.find_nodes(op="call_function", target=aten.sub.Tensor))
    values = known(gm.graph).of(body.graph).values
    assert all(values[name].guessed for name in names)
