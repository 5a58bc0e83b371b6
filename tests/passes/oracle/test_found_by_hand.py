"""Graphs that a reviewer found to be rewritten wrongly, each beside one that differs in what matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Node

from pytest_reinplace.passes import Report, declare, reinplace
from pytest_reinplace.passes._torch import collective, hop
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.graph.summary import Summaries
from pytest_reinplace.passes.reinplacing.facts.options import Ordering
from pytest_reinplace.passes.verify import assert_equivalent

from ..nested import twin
from ..trace import arange

aten, higher = torch.ops.aten, torch.ops.higher_order
PUT = "aten::index_put.self"


class Start:
    """A graph under construction: an input, where to put something into it, and what."""

    def __init__(self, count: int = 6) -> None:
        self.b = GraphBuilder()
        self.x = self.b.placeholder(arange(count))
        self.at, self.new = self.b.placeholder(torch.tensor([1])), self.b.placeholder(torch.tensor([99.0]))
        self.call = self.b.call

    def doubled(self, x: Node) -> Node:
        return self.call(aten.mul.Tensor, x, 2.0)

    def put(self, x: Node, at: Node | None = None) -> Node:
        return self.call(aten.index_put.default, x, [at or self.at], self.new)

    def total(self, x: Node) -> Node:
        return self.call(aten.sum.default, x)

    def called(self, inner: GraphBuilder, result: Node, *operands: Node) -> Node:
        """Call a subgraph that returns one value."""
        sub = self.b.subgraph(inner.finished([result]))
        value = (self.b.fresh(result.meta["val"]),)
        return self.b.item(self.b.called(higher.invoke_subgraph, (sub, "id", *operands), value), 0)

    def held(self, *outputs: Node, order: Ordering = "free") -> Report:
        gm = self.b.finished([*outputs])
        before = twin(gm)
        report = reinplace(gm, order=order)
        assert_equivalent(before, gm, self.b.inputs)
        return report


@pytest.fixture(scope="module")
def operators() -> Iterator[Any]:
    """Operators that write what they are given, or hand on views of both of their operands."""
    library = torch.library.Library("reinplace_by_hand", "DEF")
    library.define("writes(Tensor x) -> Tensor")
    library.impl("writes", lambda x: x.add_(100).sum(), "CompositeExplicitAutograd")
    library.impl("writes", lambda x: x.new_empty(()), "Meta")
    library.define("looks(Tensor x) -> Tensor")
    library.impl("looks", lambda x: x.sum(), "CompositeExplicitAutograd")
    library.impl("looks", lambda x: x.new_empty(()), "Meta")
    library.define("both(Tensor(a) x, Tensor(b) y) -> (Tensor(a), Tensor(b))")
    for key in ("CompositeExplicitAutograd", "Meta"):
        library.impl("both", lambda x, y: (x.view(x.shape), y.view(y.shape)), key)
    if hasattr(torch.Tag, "inplace"):
        library.define("adds_(Tensor(a!) self, Tensor y) -> Tensor(a!)", tags=(torch.Tag.inplace,))
        library.impl("adds_", lambda self, y: self.fill_(1).add_(y.sum()), "CompositeExplicitAutograd")
        torch.library.register_fake("reinplace_by_hand::adds_", lambda self, y: self, lib=library)
    yield torch.ops.reinplace_by_hand
    library._destroy()


@pytest.mark.parametrize("count", [0, 5])
@pytest.mark.parametrize("is_given", [True, False])
def test_a_loop_inside_a_call_may_run_not_even_once(is_given: bool, count: int) -> None:
    """Then it returns a copy of what it was given, which its body need not read."""
    s = Start(4)
    counter, doubled = s.b.placeholder(torch.tensor(count)), s.doubled(s.x)
    mode, numbers, values = s.b.fake_mode, counter.meta["val"], doubled.meta["val"]
    test, body, outer = GraphBuilder(mode), GraphBuilder(mode), GraphBuilder(mode)
    number, _ = test.operand(numbers), test.operand(values)
    go_on = test.finished(test.call(aten.lt.Scalar, number, 2))
    number, _ = body.operand(numbers), body.operand(values)
    step = body.finished([body.call(aten.add.Tensor, number, 1), body.call(aten.full.default, [4], 7.0)])
    given = outer.operand(numbers), outer.operand(values)
    made = outer.fresh(numbers), outer.fresh(values)
    loop = outer.called(higher.while_loop, (outer.subgraph(go_on), outer.subgraph(step), given, ()), made)
    new = s.put(doubled)
    result = s.called(outer, outer.item(loop, 1), counter, doubled if is_given else s.x)
    report = s.held(new, result)
    assert (PUT in report.reinplaced) is not is_given


@pytest.mark.parametrize("is_read", [True, False])
def test_a_scan_is_taken_to_read_what_it_begins_with(is_read: bool) -> None:
    s = Start(4)
    rows, doubled = s.b.placeholder(arange(3, 4)), s.doubled(s.x)
    new = s.put(doubled)
    first = s.call(aten.select.int, rows, 0, 0)
    inner = GraphBuilder(s.b.fake_mode)
    carry, row = (inner.operand(n.meta["val"]) for n in (doubled, first))
    made = inner.call(aten.mul.Tensor, carry if is_read else row, 2.0)
    body = s.b.subgraph(inner.finished([made, inner.call(aten.neg.default, made)]))
    values = s.b.fresh(doubled.meta["val"]), s.b.fresh(rows.meta["val"])
    scan = s.b.called(hop("scan"), (body, [doubled], [rows], ()), values)
    report = s.held(new, s.b.item(scan, 0), s.b.item(scan, 1), order="keep")
    assert PUT not in report.reinplaced


@pytest.mark.parametrize("is_handed", [True, False])
def test_strict_mode_may_hand_on_a_view(is_handed: bool) -> None:
    s = Start()
    doubled = s.doubled(s.x)
    inner = GraphBuilder(s.b.fake_mode)
    body = inner.finished([inner.call(aten.view.default, inner.operand(doubled.meta["val"]), [2, 3])])
    with s.b.fake_mode:
        value = doubled.meta["val"].view(2, 3)
    operand = doubled if is_handed else s.doubled(s.x)
    viewed = s.b.item(s.b.called(hop("strict_mode"), (s.b.subgraph(body), (operand,)), (value,)), 0)
    report = s.held(s.put(doubled), s.total(viewed))
    assert (PUT in report.reinplaced) is not is_handed


HIDING: dict[str, Callable[[Start, Node], Node]] = {
    "unsafe_split": lambda s, x: s.b.item(s.call(aten.unsafe_split.Tensor, x, 2), 0),
    "slice": lambda s, x: s.call(aten.slice.Tensor, x, 0, 0, 2),
    "copy": lambda s, x: s.call(aten.clone.default, s.call(aten.slice.Tensor, x, 0, 0, 2)),
}


@pytest.mark.parametrize("how", HIDING)
def test_a_reader_does_not_move_across_a_write_into_what_it_looks_at_by_another_name(how: str) -> None:
    s = Start(4)
    long = s.b.placeholder(arange(400))
    seen, doubled = HIDING[how](s, s.x), s.doubled(long)
    new = s.put(doubled)
    s.call(aten.copy_.default, s.x, s.call(aten.mul.Tensor, s.x, 10.0))
    reader = s.call(aten.add.Tensor, s.call(aten.slice.Tensor, doubled, 0, 0, 2), seen)
    report = s.held(new, reader)
    (moved,) = (o.moved for o in report.outcomes if o.label == PUT)
    assert (reader.name in [blocker.node for blocker in moved]) is (how == "copy")  # else a view may, alone


@pytest.mark.parametrize("is_changed", [True, False])
@pytest.mark.parametrize("how", ["unsafe_split", "alias"])
def test_indices_that_change_name_other_elements(how: str, is_changed: bool) -> None:
    s = Start()
    other = s.b.placeholder(torch.tensor([4]))
    split = s.b.item(s.call(aten.unsafe_split.Tensor, s.at, 1), 0) if how == "unsafe_split" else None
    at = split or s.call(aten.alias.default, s.at)
    doubled = s.doubled(s.x)
    first = s.total(s.put(doubled, at))
    if is_changed:
        s.call(aten.copy_.default, s.at, other)
    report = s.held(first, s.put(doubled, at), order="keep")
    assert report.reinplaced.count(PUT) == 1


@pytest.mark.parametrize("name", ["writes", "looks"])
def test_a_reader_does_not_move_across_a_declared_write(operators: Any, name: str) -> None:
    s, op = Start(4), getattr(operators, name).default
    long, copied = s.b.placeholder(arange(400)), s.call(aten.mul.Tensor, s.x, 1.0)
    doubled = s.doubled(long)
    new, total = s.put(doubled), s.call(op, copied)
    reader = s.call(aten.add.Tensor, s.call(aten.slice.Tensor, doubled, 0, 0, 4), copied)
    with declare(op, writes=("x",)) if name == "writes" else declare(op, reads=("x",)):
        report = s.held(new, reader, total)
    assert (PUT in report.reinplaced) is (name == "looks")


@pytest.mark.parametrize("name", ["writes", "looks"])
def test_a_subgraph_that_is_declared_to_write_is_not_understood(operators: Any, name: str) -> None:
    s, op = Start(), getattr(operators, name).default
    doubled = s.doubled(s.x)
    copy = s.call(aten.clone.default, doubled)
    inner = GraphBuilder(s.b.fake_mode)
    result = s.called(inner, inner.call(op, inner.operand(doubled.meta["val"])), doubled)
    with declare(op, writes=("x",)) if name == "writes" else declare(op, reads=("x",)):
        report = s.held(result, s.total(copy))
    assert ("aten::clone.self" in report.reinplaced) is (name == "looks")


@pytest.mark.parametrize("is_beside", [True, False])
def test_a_subgraph_looks_beside_an_operand_where_another_is_written(is_beside: bool) -> None:
    s = Start(8)
    part = s.call(aten.slice.Tensor, s.x, 0, 0, 2)
    whole, at, new = (n.meta["val"] for n in (s.x, s.at, s.new))
    inner = GraphBuilder(s.b.fake_mode)
    x, beside = inner.operand(whole), inner.graph.placeholder("beside")
    beside.meta["val"] = inner.fresh(whole).as_strided((2,), (1,), 0)
    where, what = inner.operand(at), inner.operand(new)
    half = inner.call(aten.slice.Tensor, x, 0, 4, 8)
    half = inner.call(aten.index_put.default, half, [where], what)
    written = inner.call(aten.slice_scatter.default, x, half, 0, 4, 8)
    seen = inner.call(aten.as_strided.default, beside, [4], [1], 4) if is_beside else beside
    seen = inner.call(aten.mul.Tensor, seen, 2.0)
    sub = s.b.subgraph(inner.finished([written, seen]))
    values = s.b.fresh(whole), s.b.fresh(seen.meta["val"])
    call = s.b.called(higher.invoke_subgraph, (sub, "id", s.x, part, s.at, s.new), values)
    first, second = s.b.item(call, 0), s.b.item(call, 1)
    s.call(aten.copy_.default, s.x, first)
    report = s.held(second)
    assert "invoke_subgraph.operands[0]" not in report.reinplaced


@pytest.mark.parametrize("written", [0, 1, None])
def test_views_of_two_operands_are_views_of_both(operators: Any, written: int | None) -> None:
    s = Start()
    operands = s.doubled(s.x), s.call(aten.mul.Tensor, s.x, 3.0)
    views = s.call(operators.both.default, *operands)
    target = operands[written] if written is not None else s.call(aten.mul.Tensor, s.x, 4.0)
    new = s.put(target)
    report = s.held(new, *(s.total(s.b.item(views, i)) for i in range(2)))
    assert (PUT in report.reinplaced) is (written is None)


@pytest.mark.parametrize("of", [0, 1, None])
def test_a_subgraph_may_return_a_view_of_its_second_operand(operators: Any, of: int | None) -> None:
    s = Start()
    given = s.doubled(s.x), s.call(aten.mul.Tensor, s.x, 3.0)
    inner = GraphBuilder(s.b.fake_mode)
    operands = [inner.operand(n.meta["val"]) for n in given]
    view = inner.item(inner.call(operators.both.default, *operands), 1)
    seen = s.total(s.called(inner, view, *given))
    new = s.put(given[of] if of is not None else s.call(aten.mul.Tensor, s.x, 4.0))
    report = s.held(new, seen, order="keep")
    assert (PUT in report.reinplaced) is (of is None)


@pytest.mark.parametrize("first", [0, 1])
def test_torch_takes_another_part_without_elements(first: int) -> None:
    """Of the same size and elsewhere it is not the same tensor."""
    s = Start()
    parts = s.doubled(s.x), s.call(aten.full.default, [0], 0, dtype=torch.int64)
    target = s.call(aten.slice.Tensor, parts[0], 0, 0, 0)
    source = s.call(aten.slice.Tensor, parts[0], 0, first, first)
    new = s.call(aten.index_put.default, target, [parts[1]], source)
    report = s.held(s.call(aten.neg.default, new))
    assert (PUT in report.reinplaced) is (first == 1)


@pytest.mark.parametrize("is_copy", [True, False])
@pytest.mark.parametrize("op", ["index_put", "index_add"])
def test_torch_refuses_the_very_same_tensor_without_elements(op: str, is_copy: bool) -> None:
    b = GraphBuilder()
    x = b.call(aten.flip.default, b.placeholder(torch.zeros(0, 3)), [])
    source = b.call(aten.clone.default, x) if is_copy else b.call(aten.zeros.default, [0, 3])
    index = b.call(aten.full.default, [0], 0, dtype=torch.int64)
    put = b.call(aten.index_put.default, x, [index], source) if op == "index_put" else None
    new = put or b.call(aten.index_add.default, x, 0, index, source)
    gm = b.finished([new])
    before = twin(gm)
    report = reinplace(gm)
    assert_equivalent(before, gm, b.inputs)
    assert f"aten::{op}.self" in report.reinplaced or is_copy


@pytest.mark.parametrize("how", ["broadcast", "plain"])
def test_a_subgraph_is_given_what_is_laid_out_otherwise_than_told(how: str) -> None:
    """The kernel of a broadcast makes it contiguous; memory like it, made inside, has its strides."""
    b = GraphBuilder()
    x = b.call(aten.permute.default, b.placeholder(arange(4, 6)), [1, 0])
    if how == "broadcast":
        started = b.call(collective("broadcast"), x, 0, "reinplace")
        x = b.call(collective("wait_tensor"), started)
    inner = GraphBuilder(b.fake_mode)
    given = inner.operand(x.meta["val"])
    made = inner.v1(adversary.operator("overwrite"), out=given, other=given)[-1]
    sub = b.subgraph(inner.finished([made]))
    call = b.called(higher.invoke_subgraph, (sub, "id", x), (b.fresh(made.meta["val"]),))
    gm = b.finished([b.item(call, 0)])
    before = twin(gm)
    reinplace(gm)
    assert_equivalent(before, gm, b.inputs)
    (body,) = (child for child in gm.children() if isinstance(child, GraphModule))
    is_empty = bool(body.graph.find_nodes(op="call_function", target=aten.empty_strided.default))
    assert is_empty is (how == "plain")


@pytest.mark.parametrize("start", [4, 0])
@pytest.mark.parametrize("is_negative", [True, False])
def test_a_slice_may_count_from_the_end(is_negative: bool, start: int) -> None:
    s = Start(8)
    doubled = s.doubled(s.x)
    bounds = (-4, -2) if is_negative else (4, 6)
    named = {"_x_base_index": 0, "_x_slice_dim": 0, "_x_slice_start": bounds[0], "_x_slice_end": bounds[1]}
    op = adversary.operator("bump")
    call = s.call(hop("auto_functionalized_v2"), op, **named, _all_bases=[doubled])
    seen = s.call(aten.mul.Tensor, s.call(aten.slice.Tensor, doubled, 0, start, start + 2), 3.0)
    report = s.held(s.b.item(call, 1), seen, order="keep")
    assert ("reinplace_adversary::bump.x" in report.reinplaced) is (start == 0)


# -- expanded operands of scatters -----------------------------------------------------------------


def spread(s: Start, value: Node, is_expanded: bool) -> Node:
    """Return three rows of a value: the same one each time, or copies of it."""
    row = s.call(aten.unsqueeze.default, value, 0)
    if is_expanded:
        return s.call(aten.expand.default, row, [3, 6])
    return s.call(aten.cat.default, [row] * 3)


def scattered(s: Start, rows: Node, count: int) -> Node:
    """Put sevens into the first rows; the value is what torch says, and makes."""
    source = s.call(aten.full.default, [count, 6], 7.0)
    with s.b.fake_mode:
        value = aten.slice_scatter.default(rows.meta["val"], source.meta["val"], 0, 0, count)
    return s.b.called(aten.slice_scatter.default, (rows, source, 0, 0, count), value)


@pytest.mark.parametrize("is_expanded", [True, False])
def test_elements_beside_those_that_are_scattered_may_be_the_same_bytes(is_expanded: bool) -> None:
    s = Start()
    doubled = s.doubled(s.x)
    rows = spread(s, doubled, is_expanded)
    new = s.put(doubled)
    report = s.held(new, scattered(s, rows, 1), order="keep")
    assert (PUT in report.reinplaced) is not is_expanded


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("is_expanded", [True, False])
def test_a_scatter_of_what_is_expanded_makes_all_elements(is_expanded: bool, count: int) -> None:
    """Also where offsets name bytes, and other scatters are copied to begin where they should."""
    s = Start()
    rows = spread(s, s.x, is_expanded)
    named = s.call(aten.as_strided.default, s.doubled(s.x), [2], [1], 1)
    report = s.held(scattered(s, rows, count), named)
    assert report.clones == (["aten::slice_scatter.self"] if is_expanded else [])


@pytest.mark.parametrize("name", ["mix", "overwrite"])
def test_what_is_made_of_an_expanded_value_that_is_told_anew_is_dense(name: str) -> None:
    s = Start()
    x, y = s.b.placeholder(torch.rand(6, 6).t()), s.b.placeholder(torch.rand(6, 6))
    lying = s.call(aten.copysign.Tensor, x, y)
    made = scattered(s, spread(s, s.call(aten.select.int, lying, 0, 1), True), 1)
    argument = {"out" if name == "overwrite" else "x": made}
    source = s.call(aten.full.default, [3, 6], 5.0)
    written = s.b.v1(adversary.operator(name), **argument, other=source)[-1]
    s.held(written, made)


# -- what else was not looked at -------------------------------------------------------------------


@pytest.mark.skipif(
    not hasattr(torch.Tag, "inplace"), reason="wrappers of such operators came with torch 2.13"
)
@pytest.mark.parametrize("how", ["written", "returned"])
def test_what_an_operator_hands_back_is_the_view_and_no_copy_of_it(operators: Any, how: str) -> None:
    """It reads beside what it writes, and works on a copy of that, which is put back."""
    s = Start(64)
    base = s.doubled(s.x)
    seen = s.call(aten.slice.Tensor, base, 0, 1, 60)
    part = s.call(aten.slice.Tensor, base, 0, 0, 2)
    handed, new = s.b.v2(operators.adds_.default, {"self": (base, part)}, y=seen)
    if how == "returned":
        report = s.held(new, handed)
    else:
        report = s.held(s.call(aten.slice_scatter.default, new, s.put(handed), 0, 0, 2))
    assert report.clone_bytes == 8  # the part, not the base


@pytest.mark.parametrize("is_same", [True, False])
def test_a_subgraph_may_have_the_very_tensor_that_is_written(is_same: bool) -> None:
    values = arange(6)
    s = Start()
    buffer = s.b.buffer(values)
    new = s.put(buffer)
    inner = GraphBuilder(s.b.fake_mode)
    own, given = inner.buffer(values if is_same else arange(6)), inner.operand(s.new.meta["val"])
    total = inner.call(aten.add.Tensor, inner.call(aten.sum.default, own), given)
    result = s.called(inner, total, s.new)
    s.call(aten.copy_.default, buffer, new)
    gm = s.b.finished([result])
    (expected,) = gm(*s.b.inputs)
    values.copy_(arange(6))
    report = reinplace(gm)
    assert torch.equal(gm(*s.b.inputs)[0], expected)
    assert (PUT in report.reinplaced) is not is_same


@pytest.mark.parametrize("count", [0, 2])
def test_what_has_no_elements_still_has_a_storage_to_share(count: int) -> None:
    """Who is given it may look at what else is there."""
    s = Start()
    new = s.put(s.x)
    s.call(aten.copy_.default, s.x, new)
    gm = s.b.finished([s.call(aten.slice.Tensor, new, 0, 2, 2 + count)])
    assert PUT in reinplace(gm).reinplaced
    given = [t.clone() for t in s.b.inputs]
    (part,) = gm(*given)
    assert part.untyped_storage().data_ptr() != given[0].untyped_storage().data_ptr()


@pytest.mark.parametrize("is_told", [True, False])
def test_whether_a_copy_is_made_may_depend_on_strides_that_are_not_told(is_told: bool) -> None:
    """What a broadcast makes is contiguous, whatever is told; then `contiguous` copies nothing."""
    s = Start()
    x = s.call(aten.neg.default, s.b.placeholder(arange(6, 4).t()))
    if not is_told:
        x = s.call(collective("wait_tensor"), s.call(collective("broadcast"), x, 0, "group"))
    inner = GraphBuilder(s.b.fake_mode)
    given, at, new = (inner.operand(n.meta["val"]) for n in (x, s.at, s.new))
    dense = inner.call(aten.contiguous.default, inner.call(aten.alias.default, given))
    written = inner.call(aten.index_put.default, dense, [at], new)
    total = inner.call(aten.sum.default, given)
    sub = s.b.subgraph(inner.finished([written, total]))
    values = tuple(s.b.fresh(n.meta["val"]) for n in (written, total))
    call = s.b.called(higher.invoke_subgraph, (sub, "id", x, s.at, s.new), values)
    report = s.held(s.b.item(call, 0), s.b.item(call, 1), order="keep")
    assert (PUT in report.reinplaced) is is_told


@pytest.mark.parametrize("count", [0, 2])
def test_a_view_of_another_dtype_asks_for_strides_without_elements_too(count: int) -> None:
    s = Start(16)
    gaps = s.call(aten.as_strided.default, s.x, [count, 3], [6, 2], 0)
    inner = GraphBuilder(s.b.fake_mode)
    given = inner.operand(gaps.meta["val"])
    given = inner.call(aten.view_as.default, given, given) if not count else given  # told to be contiguous
    dense = inner.call(aten.clone.default, given, memory_format=torch.contiguous_format)
    result = s.called(inner, dense, gaps)
    s.held(s.call(aten.view.dtype, result, torch.int16))


@pytest.mark.parametrize("op", ["lift", "alias", "neg"])
@pytest.mark.parametrize("is_given", [True, False])
def test_what_a_mapped_function_hands_on_is_read_to_be_stacked(is_given: bool, op: str) -> None:
    s = Start()
    doubled = s.doubled(s.x)
    new = s.put(doubled)
    inner = GraphBuilder(s.b.fake_mode)
    with s.b.fake_mode:
        row = doubled.meta["val"].select(0, 0)
    body = inner.finished([inner.call(getattr(aten, op).default, inner.operand(row))])
    given = doubled if is_given else s.doubled(s.x)
    call = s.b.called(hop("map_impl"), (s.b.subgraph(body), [given], []), (s.b.fresh(doubled.meta["val"]),))
    report = s.held(new, s.b.item(call, 0), order="keep")
    assert (PUT in report.reinplaced) is not is_given


@pytest.mark.parametrize("is_told", [True, False])
def test_a_part_of_what_is_not_told_is_not_the_whole(is_told: bool) -> None:
    """Which bytes are written is not known, and an operator that works row by row reads all of them."""
    s = Start()
    given = s.b.placeholder(arange(6, 4).t()), s.b.placeholder(arange(4, 6))
    x = s.call(aten.mul.Tensor if is_told else aten.ldexp.Tensor, *given)
    part = s.call(aten.slice.Tensor, x, 0, 0, 1)
    report = s.held(s.b.v2(adversary.operator("rows"), {"x": (x, part)}, other=x)[-1])
    assert report.clone_bytes == (24 if is_told else 96)


@pytest.mark.parametrize("is_nested", [True, False])
def test_what_a_call_inside_a_call_stacks_is_read(is_nested: bool) -> None:
    s = Start()
    doubled = s.doubled(s.x)
    new = s.put(doubled)
    outer = GraphBuilder(s.b.fake_mode)
    inner = GraphBuilder(s.b.fake_mode)
    given = outer.operand(doubled.meta["val"])
    with s.b.fake_mode:
        row = doubled.meta["val"].select(0, 0)
    body = outer.subgraph(inner.finished([inner.call(aten.alias.default, inner.operand(row))]))
    call = outer.called(hop("map_impl"), (body, [given], []), (outer.fresh(doubled.meta["val"]),))
    result = outer.item(call, 0) if is_nested else outer.call(aten.full.default, [6], 3.0)
    result = outer.call(aten.mul.Tensor, result, 2.0)
    report = s.held(new, s.called(outer, result, doubled), order="keep")
    assert PUT not in report.reinplaced


@pytest.mark.parametrize("written", ["module", "fresh"])
def test_a_subgraph_that_writes_what_its_module_keeps_is_not_understood(written: str) -> None:
    inner = GraphBuilder()
    given = inner.operand(torch.zeros(6))
    own = inner.buffer(arange(6)) if written == "module" else inner.call(aten.neg.default, given)
    module = inner.finished([inner.call(aten.sum.default, inner.call(aten.add_.Tensor, own, given))])
    assert (Summaries().of(module) is None) is (written == "module")


@pytest.mark.parametrize("is_told", [True, False])
def test_where_a_whole_is_written_each_element_is_made_of_its_own(is_told: bool) -> None:
    """A wrapper of names writes all that it is given, wherever that lies; what is not told stays as it is."""
    s = Start()
    given = s.b.placeholder(arange(6, 4).t()), s.b.placeholder(arange(4, 6))
    x = s.call(aten.mul.Tensor if is_told else aten.ldexp.Tensor, *given)
    report = s.held(s.b.v1(adversary.operator("rows"), x=x, other=x)[-1])
    assert (report.clone_bytes == 0) is is_told


def test_of_what_is_returned_beside_nothing_the_part_is_copied() -> None:
    """It costs less than the copy of all; what has no elements is copied for nothing."""
    s = Start()
    doubled = s.doubled(s.x)
    part, nothing = (s.call(aten.slice.Tensor, doubled, 0, 3, end) for end in (4, 3))
    one = s.call(aten.full.default, [1], 7.0)
    report = s.held(part, nothing, s.call(aten.slice_scatter.default, doubled, one, 0, 0, 1))
    assert report.reinplaced == ["aten::slice_scatter.self"] and report.clone_bytes == 4


@pytest.mark.parametrize("converts", [True, False])
def test_a_copy_without_elements_is_none_unless_it_is_laid_out_otherwise(converts: bool) -> None:
    s = Start()
    nothing = s.call(aten.neg.default, s.b.placeholder(torch.empty(3, 0)))
    kept = {"memory_format": torch.contiguous_format} if converts else {}
    report = s.held(s.call(aten.clone.default, nothing, **kept))
    assert len(report.outcomes) == (0 if converts else 1)


@pytest.mark.parametrize("op", ["alias", "contiguous"])
def test_a_view_of_what_is_not_told_is_not_written(op: str) -> None:
    """Whether `contiguous` gives one depends on strides; of the other the real strides are not known."""
    s = Start()
    given = s.b.placeholder(arange(6, 4).t()), s.b.placeholder(arange(4, 6))
    view = s.call(getattr(aten, op).default, s.call(aten.ldexp.Tensor, *given))
    report = s.held(s.put(view))
    assert PUT not in report.reinplaced
