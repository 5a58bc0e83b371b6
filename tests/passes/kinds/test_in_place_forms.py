"""Functional operators with an in-place form: single tensors, lists, collectives; and where they must not."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes import Reason, Report, reinplace
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.ops.in_place_form import in_place_form
from pytest_reinplace.passes.verify import assert_equivalent

aten = torch.ops.aten
Tensor = torch.Tensor

ROWS = torch.tensor([1, 3])
INDEX = ROWS.view(2, 1).expand(2, 4).contiguous()


def x() -> Tensor:
    return torch.arange(24, dtype=torch.float32).view(6, 4)


def y() -> Tensor:
    return torch.arange(100, 108, dtype=torch.float32).view(2, 4)


def traced(fn: Callable[..., Any], *inputs: Any) -> GraphModule:
    return make_fx(fn, tracing_mode="fake")(*inputs)


def targets(gm: GraphModule) -> list[str]:
    return [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]


def rewritten(fn: Callable[..., Any], *inputs: Any) -> tuple[Report, GraphModule]:
    """Trace, rewrite, and hold the result against the traced graph."""
    gm = traced(fn, *inputs)
    new = copy.deepcopy(gm)
    report = reinplace(new, order="keep")
    assert_equivalent(gm, new, list(inputs))
    return report, new


def held(b: GraphBuilder, outputs: list[Node]) -> tuple[Report, GraphModule]:
    """Finish a graph, rewrite it, and hold the result against it as it was."""
    gm = b.finished(outputs)
    new = copy.deepcopy(gm)
    report = reinplace(new, order="keep")
    assert_equivalent(gm, new, b.inputs)
    return report, new


WRITERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "index_add": lambda b, v, rows, index: aten.index_add.default(b, 0, rows, v),
    "index_copy": lambda b, v, rows, index: aten.index_copy.default(b, 0, rows, v),
    "index_fill": lambda b, v, rows, index: aten.index_fill.int_Scalar(b, 0, rows, 7),
    "index_reduce": lambda b, v, rows, index: aten.index_reduce.default(b, 0, rows, v, "prod"),
    "scatter": lambda b, v, rows, index: aten.scatter.src(b, 0, index, v),
    "scatter_value": lambda b, v, rows, index: aten.scatter.value(b, 0, index, 3.0),
    "scatter_add": lambda b, v, rows, index: aten.scatter_add.default(b, 0, index, v),
    "scatter_reduce": lambda b, v, rows, index: aten.scatter_reduce.two(b, 0, index, v, "amax"),
    "masked_scatter": lambda b, v, rows, index: aten.masked_scatter.default(b, b > 3, b.neg()),
    "put": lambda b, v, rows, index: aten.put.default(b, rows, v[0, :2]),
    "addmm": lambda b, v, rows, index: aten.addmm.default(b, v.new_ones(6, 2), v, beta=2),
    "cumsum": lambda b, v, rows, index: aten.cumsum.default(b, 0),
    "cumprod": lambda b, v, rows, index: aten.cumprod.default(b, 1),
    "uniform": lambda b, v, rows, index: aten.uniform.default(b),
    "exponential": lambda b, v, rows, index: aten.exponential.default(b),
    "normal": lambda b, v, rows, index: aten.normal_functional.default(b, 1.0, 2.0),
    "bernoulli": lambda b, v, rows, index: aten.bernoulli.p(b, 0.3),
    "bernoulli_of": lambda b, v, rows, index: aten.bernoulli.Tensor(b, v.new_full(b.shape, 0.3)),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_dead_operand_is_written(write: Callable[..., Tensor]) -> None:
    report, gm = rewritten(
        lambda x, y, rows, index: write(x + 1, y, rows, index).sum(), x(), y(), ROWS, INDEX
    )
    assert [o.reinplaced for o in report.outcomes] == [True]
    assert any(t.split(".")[1].endswith("_") for t in targets(gm))


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_an_operand_that_is_read_later_is_not(write: Callable[..., Tensor]) -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        old = x + 1
        new = write(old, y, rows, index)
        return new, old.sum()

    report, gm = rewritten(program, x(), y(), ROWS, INDEX)
    assert not any(o.reinplaced for o in report.outcomes)
    assert not any(t.split(".")[1].endswith("_") for t in targets(gm))


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_an_input_is_written_if_it_is_written_back(write: Callable[..., Tensor]) -> None:
    def kept(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> Tensor:
        return write(x, y, rows, index).sum()

    def updated(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> Tensor:
        new = write(x, y, rows, index)
        aten.copy_.default(x, new)
        return new.sum()

    assert not any(o.reinplaced for o in rewritten(kept, x(), y(), ROWS, INDEX)[0].outcomes)
    report, gm = rewritten(updated, x(), y(), ROWS, INDEX)
    assert all(o.reinplaced for o in report.outcomes)
    assert "aten.copy_.default" not in targets(gm)


def test_the_order_of_random_numbers_stays() -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, b = aten.uniform.default(x + 1), aten.exponential.default(x + 2)
        return a, b, aten.uniform.default(x + 3)

    _, gm = rewritten(program, x())
    assert [t for t in targets(gm) if t.endswith("_.default")] == [
        "aten.uniform_.default",
        "aten.exponential_.default",
        "aten.uniform_.default",
    ]


def test_an_operand_that_overlaps_what_is_written_is_copied() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> Tensor:
        b = x + 1
        return aten.index_copy.default(b, 0, rows, b[2:4])

    report, gm = rewritten(program, x(), y(), ROWS, INDEX)
    assert [(o.label, o.reason) for o in report.outcomes if not o.reinplaced] == [
        ("aten::index_copy.source", Reason.SAME_NODE)
    ]
    assert "aten.index_copy_.default" in targets(gm)


def test_a_pointwise_operator_may_be_given_itself_but_not_a_part_moved() -> None:
    def itself(x: Tensor) -> Tensor:
        b = (x * 5).to(torch.int64)
        return aten.gcd.default(b, b)

    def shifted(x: Tensor) -> Tensor:
        b = (x * 5).to(torch.int64)
        return aten.gcd.default(b[1:], b[:-1]).sum() + b[0, 0]

    assert "aten.gcd_.default" in targets(rewritten(itself, x())[1])
    assert "aten.gcd_.default" not in targets(rewritten(shifted, x())[1])


def test_a_pointwise_operator_is_not_given_itself_with_other_strides_of_single_elements() -> None:
    """torch compares those strides, too, and refuses."""

    def column(x: Tensor) -> Tensor:
        b = aten.neg.default((x[:1] * 5).to(torch.int64)).permute(1, 0)
        b = aten.clone.default(b)
        return aten.gcd.default(b, b.view(4).view(4, 1))

    def listed(x: Tensor) -> list[Tensor]:
        b = aten.clone.default(aten.neg.default(x[:1]).permute(1, 0))
        return aten._foreach_add.List([b], [b.view(4).view(4, 1)])

    for program in (column, listed):
        assert not {"aten.gcd_.default", "aten._foreach_add_.List"} & set(targets(rewritten(program, x())[1]))


@pytest.mark.parametrize("start", [0, 2, 4])
def test_a_factor_of_a_product_is_not_what_the_product_is_added_to(start: int) -> None:
    def program(x: Tensor) -> Tensor:
        b = x + 1
        aten.addmm.default(b[:2, :2], b[:2, :2], x[:2, :2]).sum()
        return aten.addmm.default(b[:2], x[:2, :2], b[start : start + 2])

    report, _ = rewritten(program, x())
    assert report.reinplaced == ([] if start == 0 else ["aten::addmm.self"])


def test_a_product_is_not_added_to_what_is_broadcast_or_of_another_dtype() -> None:
    def row(x: Tensor) -> Tensor:
        return aten.addmm.default(x[0] + 1, x, x[:4])

    def counts(x: Tensor) -> Tensor:
        return aten.cumsum.default((x > 3).to(torch.int32), 0)

    assert rewritten(row, x())[0].reinplaced == rewritten(counts, x())[0].reinplaced == []


def test_expanded_operands_are_never_written() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> Tensor:
        return aten.index_add.default((x[:1] + 1).expand(6, 4), 0, rows, y)

    report, _ = rewritten(program, x(), y(), ROWS, INDEX)
    assert [o.reason for o in report.outcomes] == [Reason.SELF_OVERLAP]


@pytest.mark.parametrize(
    "name", ["add.Tensor", "neg.default", "silu.default", "squeeze.default", "logcumsumexp.default"]
)
def test_what_inductor_fuses_or_views_has_no_form_worth_using(name: str) -> None:
    packet, overload = name.split(".")
    assert in_place_form(getattr(getattr(aten, packet), overload)) is None


# -- lists --------------------------------------------------------------------------------------------


def test_all_elements_of_a_list_are_written() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> list[Tensor]:
        return aten._foreach_mul.ScalarList([x + 1, y + 1], [2.0, 3.0])

    report, gm = rewritten(program, x(), y(), ROWS, INDEX)
    assert [o.label for o in report.outcomes] == ["aten::_foreach_mul.self[0]", "aten::_foreach_mul.self[1]"]
    assert targets(gm)[-1] == "aten._foreach_mul_.ScalarList"


def test_a_mixed_list_is_written_in_part() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> tuple[Tensor, ...]:
        b, c = x + 1, y + 1
        r = aten._foreach_mul.ScalarList([x, b, c], [2.0, 3.0, 4.0])
        return r[0], r[1], r[2], c.sum()

    report, gm = rewritten(program, x(), y(), ROWS, INDEX)
    assert [o.label for o in report.outcomes] == ["aten::_foreach_mul.self[1]"]
    assert [t for t in targets(gm) if "foreach" in t] == [
        "aten._foreach_mul.ScalarList",
        "aten._foreach_mul_.ScalarList",
    ]


def test_every_operator_over_lists_that_torch_has_in_place_has_a_form() -> None:
    known = {name.partition(".")[0].removeprefix("aten::") for name in torch._C._dispatch_get_all_op_names()}
    names = sorted(name for name in known if name.startswith("_foreach_") and f"{name}_" in known)
    found = {
        f"{name}.{overload}": in_place_form(getattr(getattr(aten, name), overload))
        for name in names
        for overload in set(getattr(aten, name).overloads()) & set(getattr(aten, f"{name}_").overloads())
        if "out" not in overload
    }
    assert len(found) > 60 and [name for name, form in found.items() if form is None] == []


@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_a_tensor_for_all_of_a_list_is_given_to_each_element(name: str) -> None:
    op, alpha = getattr(aten, f"_foreach_{name}").Tensor, {"alpha": 2} if name == "add" else {}

    def program(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> list[Tensor]:
        return op([x + 1, y + 1], y[1, 1], **alpha)

    report, gm = rewritten(program, x(), y(), ROWS, INDEX)
    assert report.clones == [] and len(report.reinplaced) == 2
    assert targets(gm)[-1] == f"aten._foreach_{name}_.List"
    written = list(gm.graph.nodes)[-2]
    assert len(written.args[1]) == 2 and written.kwargs == alpha


def test_a_list_with_a_tensor_for_all_is_written_in_part() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> tuple[Tensor, ...]:
        b, c = x + 1, y + 1
        r = aten._foreach_mul.Tensor([x, b, c], y[0, 1])
        return r[0], r[1], r[2], c.sum()

    report, gm = rewritten(program, x(), y(), ROWS, INDEX)
    assert report.reinplaced == ["aten::_foreach_mul.self[1]"]
    assert [t for t in targets(gm) if "foreach" in t] == [
        "aten._foreach_mul.Tensor",
        "aten._foreach_mul_.List",
    ]


def test_what_all_of_a_list_is_computed_from_is_not_written() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> list[Tensor]:
        a, b = x + 1, y + 1
        return aten._foreach_mul.Tensor([a, b], a[0, 3])

    report, _ = rewritten(program, x(), y(), ROWS, INDEX)
    assert report.reinplaced == ["aten::_foreach_mul.self[1]"]


def test_results_of_another_dtype_or_of_elements_that_overlap_are_new() -> None:
    def halves(x: Tensor) -> list[Tensor]:
        return aten._foreach_mul.Tensor([x.to(torch.int64)], x[0, 1])

    def expanded(x: Tensor) -> list[Tensor]:
        return aten._foreach_mul.Tensor([(x[:, :1] + 1).expand(6, 4)], x[0, 1])

    for program in (halves, expanded):
        report, gm = rewritten(program, x())
        assert report.reinplaced == [] and "aten._foreach_mul.Tensor" in targets(gm)


def test_a_part_that_is_read_after_it_was_written_is_copied() -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        b = x + 1
        r = aten._foreach_mul.Tensor([b[:3], b[3:]], x[0, 1])
        return r[0], r[1], b[2:].sum()

    assert rewritten(program, x())[0].reinplaced == []


def test_one_tensor_twice_in_a_list_is_written_once() -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        b = x + 1
        r = aten._foreach_add.Scalar([b, b], 1)
        return r[0], r[1] * 2

    report, _ = rewritten(program, x())
    assert sum(o.reinplaced for o in report.outcomes) == 1


def test_elements_that_read_each_other_are_not_both_written() -> None:
    def crossed(x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x + 1, x + 2
        r = aten._foreach_add.List([a, b], [b, a])
        return r[0], r[1]

    def parallel(x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x + 1, x + 2
        r = aten._foreach_add.List([a, b], [a, b])
        return r[0], r[1]

    assert sum(o.reinplaced for o in rewritten(crossed, x())[0].outcomes) < 2
    report, _ = rewritten(parallel, x())
    assert [o.reinplaced for o in report.outcomes] == [True, True]


def test_a_flipped_operand_is_read_before_its_list_is_written() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> None:
        r = aten._foreach_add.List([x, y], [x.flip(0), y.flip(0)])
        aten.copy_.default(x, r[0])
        aten.copy_.default(y, r[1])

    report, gm = rewritten(program, x(), y(), ROWS, INDEX)
    assert report.clones == []
    assert targets(gm)[-1] == "aten._foreach_add_.List"


# -- collectives --------------------------------------------------------------------------------------

c10d = getattr(torch.ops, "_c10d_functional", None)
needs_distributed = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this torch is built without torch.distributed"
)


def judged(fn: Callable[..., Any], *inputs: Any) -> tuple[Report, GraphModule]:
    """Rewrite a graph that cannot run here: there are no other processes."""
    gm = traced(fn, *inputs)
    report = reinplace(gm)
    return report, gm


@needs_distributed
def test_a_collective_is_done_in_place() -> None:
    def program(x: Tensor) -> Tensor:
        out = c10d.all_reduce(x + 1, "sum", "0")
        return c10d.wait_tensor(out) * 2

    report, gm = judged(program, x())
    assert [(o.label, o.reinplaced) for o in report.outcomes] == [
        ("_c10d_functional::all_reduce.input", True)
    ]
    assert "_c10d_functional.all_reduce_.default" in targets(gm)


@needs_distributed
def test_nobody_reads_a_buffer_that_a_collective_is_writing() -> None:
    def before_wait(x: Tensor) -> Tensor:
        b = x + 1
        out = c10d.all_reduce(b, "sum", "0")
        total = b.sum()
        return c10d.wait_tensor(out) * total

    def before_start(x: Tensor) -> Tensor:
        b = x + 1
        total = b.sum()
        out = c10d.all_reduce(b, "sum", "0")
        return c10d.wait_tensor(out) * total

    assert not judged(before_wait, x())[0].outcomes[0].reinplaced
    assert judged(before_start, x())[0].outcomes[0].reinplaced


@needs_distributed
def test_nobody_writes_a_buffer_that_a_collective_is_using() -> None:
    def busy(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        b = x + 1
        out = c10d.all_gather_into_tensor(b, 1, "0")
        new = aten.index_add.default(b, 0, rows, y)
        return c10d.wait_tensor(out), new

    def waited(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        b = x + 1
        out = c10d.wait_tensor(c10d.all_gather_into_tensor(b, 1, "0"))
        new = aten.index_add.default(b, 0, rows, y)
        return out.clone(), new

    outcomes = {o.op: o for o in judged(busy, x(), y(), ROWS, INDEX)[0].outcomes}
    assert outcomes["aten::index_add"].reason is Reason.IN_FLIGHT
    outcomes = {o.op: o for o in judged(waited, x(), y(), ROWS, INDEX)[0].outcomes}
    assert outcomes["aten::index_add"].reinplaced


@needs_distributed
def test_an_input_is_not_copied_into_while_a_collective_writes_it() -> None:
    """What lands at the wait would otherwise overwrite the new content."""

    def landing(x: Tensor, y: Tensor) -> None:
        out = c10d.all_reduce(x, "sum", "0")
        aten.copy_.default(x, y)
        c10d.wait_tensor(out)

    def landed(x: Tensor, y: Tensor) -> None:
        out = c10d.wait_tensor(c10d.all_reduce(x, "sum", "0"))
        aten.copy_.default(x, out * 2)

    assert not judged(landing, x(), x())[0].outcomes[0].reinplaced
    assert judged(landed, x(), x())[0].outcomes[0].reinplaced


@needs_distributed
def test_a_coalesced_collective_stays_one_call() -> None:
    def program(x: Tensor, y: Tensor, rows: Tensor, index: Tensor) -> tuple[Tensor, ...]:
        a, b = x + 1, y + 1
        outs = c10d.all_reduce_coalesced([a, b], "sum", "0")
        first, second = (c10d.wait_tensor(o) for o in outs)
        return first * 2, second * 2, b.sum()

    report, gm = judged(program, x(), y(), ROWS, INDEX)
    assert [(o.arg, o.reinplaced) for o in report.outcomes] == [("inputs[0]", True), ("inputs[1]", False)]
    assert [t for t in targets(gm) if "all_reduce" in t] == ["_c10d_functional.all_reduce_coalesced_.default"]


# -- effects ------------------------------------------------------------------------------------------


def effectful(read_later: bool) -> GraphModule:
    """Return a graph that prints a value and then overwrites it, or the other way round."""
    from torch._higher_order_ops.effects import with_effects
    from torch._subclasses.fake_tensor import FakeTensorMode

    graph, mode = torch.fx.Graph(), FakeTensorMode()
    token, value = graph.placeholder("token"), graph.placeholder("x")
    token.meta["val"], value.meta["val"] = mode.from_tensor(torch.empty(0)), mode.from_tensor(x())
    old = graph.call_function(aten.neg.default, (value,))

    def write() -> torch.fx.Node:
        new = graph.call_function(aten.scatter.value, (old, 0, index, 3.0))
        new.meta["val"] = mode.from_tensor(x())
        return new

    index = graph.placeholder("index")
    index.meta["val"] = mode.from_tensor(INDEX)
    value.append(index)
    old.meta["val"] = mode.from_tensor(x())
    new = write() if read_later else None
    told = graph.call_function(with_effects, (token, aten.sum.default, old))
    told.meta["val"] = (mode.from_tensor(torch.empty(0)), mode.from_tensor(torch.empty(())))
    new = new or write()
    graph.output((new, told))
    return GraphModule(torch.nn.Module(), graph)


def test_an_effectful_reader_is_a_reader_and_nothing_more() -> None:
    assert reinplace(effectful(read_later=False)).outcomes[0].reinplaced
    assert reinplace(effectful(read_later=True)).outcomes[0].reason is Reason.STILL_READ


@pytest.mark.parametrize(("taken", "clones"), [("shape", []), ("elements", ["aten::index_add.self"])])
def test_an_operator_that_takes_only_the_shape_reads_nothing(taken: str, clones: list[str]) -> None:
    def program(b: Tensor, v: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        cache = b + 1
        new = aten.index_add.default(cache, 0, rows, v)
        return new, aten.fill.Scalar(cache, 3.0) if taken == "shape" else aten.cat.default([cache, cache])

    report, _ = rewritten(program, x(), x()[:2] + 1, torch.tensor([1, 0]))
    assert report.clones == clones


@pytest.mark.parametrize("apart", [False, True])
def test_a_list_that_is_not_taken_apart_is_listed_as_left(apart: bool) -> None:
    """Nothing is copied for it, either: each element is computed anew."""
    b = GraphBuilder()
    one, two = b.placeholder(x()), b.placeholder(x() + 1)
    sums = b.call(aten._foreach_add.Scalar, [b.call(aten.neg.default, one), b.call(aten.neg.default, two)], 3)
    items = [b.item(sums, 0), b.item(sums, 1)] if apart else sums
    stacked = b.called(aten.stack.default, (items,), b.fresh(torch.empty(2, 6, 4)))
    report, _ = held(b, [stacked])
    labels = ["aten::_foreach_add.self[0]", "aten::_foreach_add.self[1]"]
    assert [o.label for o in report.outcomes] == labels
    assert {o.reason for o in report.outcomes} == {None if apart else Reason.UNSUPPORTED}
    assert report.clone_bytes == 0 and all(o.allocates for o in report.outcomes)


@pytest.mark.parametrize("taken", [True, False])
def test_an_element_that_nobody_takes_is_not_computed(taken: bool) -> None:
    b = GraphBuilder()
    given, kept = b.placeholder(x()), b.placeholder(x())
    both = b.call(aten._foreach_add.Scalar, [b.call(aten.mul.Tensor, given, 3), kept], 7)
    first, second = (b.call(operator.getitem, both, i) for i in (0, 1))
    _, gm = held(b, [first, second] if taken else [first])
    assert targets(gm).count("aten._foreach_add.Scalar") == taken
    assert "aten._foreach_add_.Scalar" in targets(gm)
