"""Operators whose mutable arguments are only outputs, and operators that return what they wrote."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Node

from pytest_reinplace.passes import GraphError, Reason, Report, inductor_options, observe, reinplace
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import assert_equivalent, copied

from ..trace import arange, functional

Tensor = torch.Tensor

aten = torch.ops.aten
hop = torch.ops.higher_order.auto_functionalized_v2

_library = torch.library.Library("reinplace_outs", "FRAGMENT")
_out = (torch.Tag.out,) if hasattr(torch.Tag, "out") else ()
_inplace = (torch.Tag.inplace,) if hasattr(torch.Tag, "inplace") else ()

pytestmark = pytest.mark.skipif(
    not (_out and _inplace), reason="torch does not functionalize operators that return what they write"
)


def _define(name: str, schema: str, kernel: Callable[..., Any], fake: Callable[..., Any], tags: Any) -> None:
    _library.define(name + schema, tags=tags)
    _library.impl(name, kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"reinplace_outs::{name}", fake, lib=_library)


def _plus_one(x: Tensor, *, out: Tensor) -> Tensor:
    """Write garbage before anything is read: what shares memory with ``x`` shows."""
    out.fill_(-7)
    return out.copy_(x + 1)


def _both(x: Tensor, *, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    a.fill_(-7)
    b.copy_(x * 2)
    a.copy_(x + 1)
    return a, b


_define("one.out", "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", _plus_one, lambda x, *, out: out, _out)
_define(
    *("two.out", "(Tensor x, *, Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!), Tensor(b!))", _both),
    *(lambda x, *, a, b: (a, b), _out),
)
_define(
    *("sum.out", "(Tensor x, Tensor y, *, Tensor(a!) out) -> Tensor(a!)"),
    *(lambda x, y, *, out: out.fill_(-7).copy_(x + y.sum()), lambda x, y, *, out: out, _out),
)
_define(
    *("twice_", "(Tensor(a!) self, Tensor y) -> Tensor(a!)", lambda self, y: self.mul_(2).add_(y.sum())),
    *(lambda self, y: self, _inplace),
)
_define(
    *("lies_", "(Tensor(a!) self, Tensor y) -> Tensor(a!)", lambda self, y: self.mul_(2).add_(y.sum())),
    *(lambda self, y: torch.empty_like(self), _inplace),
)
_define(
    *("tail_", "(Tensor(a!) self, Tensor y) -> Tensor(a!)", lambda self, y: self.mul_(2).add_(y.sum())[1:]),
    *(lambda self, y: self[1:], _inplace),
)
outs = torch.ops.reinplace_outs


def judged(
    program: Callable[..., Any], *inputs: Tensor, dynamic: bool = False, **more: Any
) -> tuple[Report, GraphModule]:
    specification, given = functional(program, *inputs, dynamic=dynamic)
    gm, _ = functional(program, *inputs, dynamic=dynamic)
    report = reinplace(gm, **more)
    assert_equivalent(specification, gm, given)
    assert hop not in [n.target for n in gm.graph.nodes]
    return report, gm


def made(gm: GraphModule) -> dict[str, int]:
    """Return how many nodes there are that make memory or copy."""
    counted = {"empty": aten.empty_strided.default, "clone": aten.clone.default, "copy_": aten.copy_.default}
    return {name: len(gm.graph.find_nodes(op="call_function", target=t)) for name, t in counted.items()}


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_output_costs_an_empty_buffer_and_no_copy(dynamic: bool) -> None:
    def program(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        outs.one.out(x, out=out)
        return out * 2

    report, gm = judged(program, arange(4), dynamic=dynamic)
    assert report.outcomes == () and made(gm) == {"empty": 1, "clone": 0, "copy_": 0}


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_is_copied_into_an_input_is_computed_there(dynamic: bool) -> None:
    def program(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        outs.two.out(x, a=a, b=b)
        outs.one.out(a + b, out=a)
        return x + a

    report, gm = judged(program, arange(4), arange(4), arange(4), dynamic=dynamic)
    assert report.clones == [] and set(report.reinplaced) == {
        *("reinplace_outs::two.b", "reinplace_outs::one.out"),
    }
    assert made(gm) == {"empty": 1, "clone": 0, "copy_": 0}  # `a` of the first call is overwritten


def test_an_output_that_is_also_read_is_not_overwritten_early() -> None:
    def program(x: Tensor) -> None:
        outs.one.out(x, out=x)

    report, gm = judged(program, arange(4))
    assert [(o.label, o.reason) for o in report.outcomes] == [("aten::copy_.self", Reason.SAME_NODE)]
    assert made(gm) == {"empty": 1, "clone": 0, "copy_": 1}


def test_what_is_read_of_an_input_that_an_operator_writes_is_copied_first() -> None:
    def program(x: Tensor, y: Tensor) -> None:
        outs.sum.out(x, y[:1], out=y)

    report, gm = judged(program, arange(4), arange(4))
    assert report.reinplaced == ["reinplace_outs::sum.out"] and made(gm) == {
        "empty": 0,
        "clone": 1,
        "copy_": 0,
    }


def test_a_part_of_an_input_is_written_once() -> None:
    def program(x: Tensor, pool: Tensor) -> Tensor:
        outs.one.out(x, out=pool[1])
        return pool.sum()

    report, gm = judged(program, arange(4), arange(2, 4))
    assert report.clones == [] and made(gm) == {"empty": 1, "clone": 0, "copy_": 1}


def built(
    *, reads: bool = False, returns: bool = False, strided: bool = False
) -> tuple[GraphModule, list[Any]]:
    """Copy what an operator wrote into an input, whose old value may be read in between."""
    builder = GraphBuilder()
    x, y = builder.placeholder(arange(4)), builder.placeholder(arange(8)[::2] if strided else arange(4))
    layout = {"_out_size": [4], "_out_stride": [1], "_out_dtype": torch.float32}
    device = torch.device("cpu")
    new = builder.call(hop, outs.one.out, x=x, **layout, _out_device=device, _all_bases=[])
    read = builder.call(aten.neg.default, y) if reads else x
    builder.call(aten.copy_.default, y, new)
    return builder.finished([read, new] if returns else [read]), builder.inputs


@pytest.mark.parametrize(
    ("given", "clones", "copies"),
    [
        ({}, [], 0),
        ({"reads": True}, ["aten::copy_.self"], 1),
        ({"returns": True}, ["aten::copy_.self"], 1),
        ({"strided": True}, [], 1),  # another layout than the operator was promised: never the same buffer
    ],
)
def test_the_input_is_dead_or_it_is_kept(given: dict[str, bool], clones: list[str], copies: int) -> None:
    gm, inputs = built(**given)
    report = reinplace(gm)
    assert_equivalent(built(**given)[0], gm, inputs)
    assert report.clones == clones and made(gm) == {"empty": copies, "clone": 0, "copy_": copies}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda kwargs, meta: kwargs.pop("_out_device"), "_out_device"),
        (lambda kwargs, meta: meta.update(val=[]), "1 results"),
        (lambda kwargs, meta: meta.pop("val"), "auto_functionalized_v2"),
    ],
)
def test_a_wrapper_that_is_none_is_refused_by_name(change: Callable[..., Any], message: str) -> None:
    gm, _ = built()
    node: Node = gm.graph.find_nodes(op="call_function", target=hop)[0]
    kwargs = dict(node.kwargs)
    change(kwargs, node.meta)
    node.kwargs = kwargs
    with pytest.raises(GraphError, match=message):
        reinplace(gm)
    assert node in list(gm.graph.nodes)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("part", [False, True])
def test_an_operator_that_returns_its_operand_is_in_place(part: bool, dynamic: bool) -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        value = x * 3
        first = outs.twice_(value[1] if part else value, y)
        second = outs.twice_(x[0] if part else x, y)
        return first.sum() + second.sum() + value

    report, gm = judged(program, arange(3, 4), arange(4), dynamic=dynamic)
    assert report.clones == [] and report.reinplaced == ["reinplace_outs::twice_.self"] * 2
    assert made(gm) == {"empty": 0, "clone": 0, "copy_": 0}


def handing_back(op: Any, *, read_later: bool = False) -> tuple[GraphModule, list[Any]]:
    """Use what an in-place operator returns, and perhaps what it was given."""
    builder = GraphBuilder()
    x, y = builder.placeholder(arange(3, 4)), builder.placeholder(arange(4))
    value = builder.call(aten.neg.default, x)
    row = builder.call(aten.select.int, value, 0, 1)
    returned, new = builder.v2(op, {"self": (value, row)}, y=y)
    used = builder.call(aten.mul.Tensor, returned, 5)
    last = builder.call(aten.add.Tensor, new, value if read_later else x)
    return builder.finished([used, last]), builder.inputs


@pytest.mark.parametrize(
    ("name", "read_later", "reason"),
    [
        ("twice_", False, None),
        ("twice_", True, Reason.STILL_READ),
        ("lies_", False, Reason.UNSUPPORTED),  # its fake result lies elsewhere: nobody knows which it is
    ],
)
def test_what_is_returned_is_what_was_written(name: str, read_later: bool, reason: Reason | None) -> None:
    op = getattr(outs, name).default
    gm, inputs = handing_back(op, read_later=read_later)
    report = reinplace(gm)
    assert [o.reason for o in report.outcomes if o.op == f"reinplace_outs::{name}"] == [reason]
    if name == "twice_":
        assert_equivalent(handing_back(op, read_later=read_later)[0], gm, inputs)


def test_inductor_runs_what_is_left() -> None:
    def program(x: Tensor, out: Tensor, pool: Tensor) -> Tensor:
        outs.one.out(x, out=out)
        outs.one.out(out, out=pool[1])
        outs.twice_(pool[0], x)
        return pool.sum() + out

    def given() -> list[Tensor]:
        return [arange(4), arange(4), arange(2, 4)]

    torch._dynamo.reset()
    reports: list[Report] = []
    actual, expected = given(), given()
    with observe(lambda report, _: reports.append(report)), torch.no_grad():
        options = {**inductor_options(), "fx_graph_cache": False}
        result = torch.compile(program, fullgraph=True, options=options)(*actual)
    torch.testing.assert_close(result, program(*expected))
    torch.testing.assert_close(actual, expected)
    assert reports[0].clones == [] and "reinplace_outs::one.out" in reports[0].reinplaced


def test_a_wrapper_whose_operator_returns_a_part_of_what_it_wrote_stays() -> None:
    builder = GraphBuilder()
    x, y = builder.placeholder(arange(4)), builder.placeholder(arange(3))
    called = builder.graph.call_function(
        torch.ops.higher_order.auto_functionalized, (outs.tail_.default,), {"self": x, "y": y}
    )
    whole = torch.empty_like(x.meta["val"])
    called.meta["val"] = (whole[1:], whole)
    part = builder.graph.call_function(operator.getitem, (called, 0))
    part.meta["val"] = whole[1:]
    gm = builder.finished([part])
    specification = copied(gm)

    report = reinplace(gm)
    assert [o.reason for o in report.outcomes] == [Reason.UNSUPPORTED]
    assert_equivalent(specification, gm, builder.inputs)
