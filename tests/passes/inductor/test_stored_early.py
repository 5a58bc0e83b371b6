"""Values that are put into memory because a kernel overwrites what they are computed from."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Node

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.mend.stored_early import realize
from pytest_reinplace.passes.inductor.schedule import check
from pytest_reinplace.passes.inductor.schedule.check import watching_schedules
from pytest_reinplace.passes.verify.execution import run

from ..trace import arange, functional, ops

aten = torch.ops.aten


class Program:
    """A graph that Inductor gets: ``x`` is written by a kernel."""

    def __init__(self, *shape: int) -> None:
        self.builder = GraphBuilder()
        self.x = self.builder.placeholder(arange(*(shape or (4, 4))))
        self.y = self.builder.placeholder(arange(*(shape or (4, 4))) + 7)
        self.call = self.builder.call

    def write(self, x: Node | None = None) -> None:
        self.builder.graph.call_function(ops.scale.default, (x or self.x, self.y))

    def stored(self, *outputs: Node) -> list[str]:
        """Return the names of the values that are stored, and see that the graph computes the same."""
        self.builder.graph.output(outputs)  # not finished(): it would erase the kernel
        gm = GraphModule(torch.nn.Module(), self.builder.graph)
        inputs = self.builder.inputs
        expected = [t.clone() for t in run(gm, [i.clone() for i in inputs])]
        count = realize(gm.graph)
        gm.graph.lint()
        gm.recompile()
        for was, now in zip(expected, run(gm, [i.clone() for i in inputs]), strict=True):
            assert torch.equal(was, now)
        copies: Any = [n for n in gm.graph.nodes if n.target is aten.copy_.default]
        found = [n.args[1].name for n in copies if n.args[0].target is aten.empty_strided.default]
        assert len(found) == count
        return found


def test_a_value_that_is_used_after_the_write_is_stored() -> None:
    p = Program()
    old = p.call(aten.mul.Tensor, p.x, 2)
    p.write()
    assert p.stored(p.call(aten.neg.default, old)) == [old.name]


def test_a_collective_is_not() -> None:
    """A copy of it in front of its wait would copy what has not come yet."""
    pytest.importorskip("torch.distributed._functional_collectives")
    p = Program()
    started = p.call(torch.ops._c10d_functional.all_gather_into_tensor.default, p.x, 1, "0")
    waited = p.call(torch.ops._c10d_functional.wait_tensor.default, started)
    p.write()
    p.builder.graph.output((waited,))
    gm = GraphModule(torch.nn.Module(), p.builder.graph)
    assert realize(gm.graph) == 0
    assert waited.args == (started,)


def test_a_value_of_other_bytes_is_not() -> None:
    p = Program()
    old = p.call(aten.mul.Tensor, p.y, 2)
    p.write()
    assert p.stored(p.call(aten.neg.default, old)) == []


def test_a_value_that_is_used_only_before_the_write_is_not() -> None:
    p = Program()
    old = p.call(aten.neg.default, p.call(aten.mul.Tensor, p.x, 2))
    p.write()
    assert p.stored(old) == []  # an output is stored at once


def test_a_value_of_the_new_bytes_is_not() -> None:
    p = Program()
    p.write()
    assert p.stored(p.call(aten.neg.default, p.call(aten.mul.Tensor, p.x, 2))) == []


def test_what_is_computed_from_it_is_stored_in_its_stead() -> None:
    p = Program()
    first = p.call(aten.mul.Tensor, p.x, 2)
    second = p.call(aten.add.Tensor, first, 1)
    p.write()
    assert p.stored(p.call(aten.neg.default, second)) == [second.name]


def test_what_is_computed_from_a_stored_value_is_not() -> None:
    p = Program()
    first = p.call(aten.mul.Tensor, p.x, 2)
    second = p.call(aten.add.Tensor, first, 1)
    p.write()
    assert p.stored(p.call(aten.add.Tensor, p.call(aten.neg.default, second), first)) == [first.name]


def test_a_view_is_made_of_the_stored_value() -> None:
    p = Program()
    old = p.call(aten.mul.Tensor, p.x, 2)
    row = p.call(aten.select.int, old, 0, 1)
    p.write()
    assert p.stored(p.call(aten.neg.default, row)) == [old.name]


def test_a_write_into_a_view_counts() -> None:
    p = Program()
    old = p.call(aten.mul.Tensor, p.call(aten.view.default, p.x, [16]), 2)
    p.write(p.call(aten.view.default, p.x, [4, 4]))
    assert p.stored(p.call(aten.neg.default, old)) == [old.name]


def test_a_view_of_the_buffer_itself_is_no_value() -> None:
    p = Program()
    row = p.call(aten.select.int, p.x, 0, 1)
    p.write()
    assert p.stored(p.call(aten.neg.default, row)) == []


def test_a_long_reduction_ends_in_memory() -> None:
    p = Program(16, 16)
    old = p.call(aten.sum.default, p.x)
    p.write()
    assert p.stored(p.call(aten.neg.default, old)) == []


def test_a_single_element_that_is_returned_is_stored() -> None:
    p = Program()
    old = p.call(aten.mul.Tensor, p.call(aten.select.int, p.call(aten.select.int, p.x, 0, 0), 0, 0), 2)
    p.write()
    assert p.stored(old) == [old.name]


def test_what_inductor_writes_itself_needs_nothing() -> None:
    p = Program()
    old = p.call(aten.mul.Tensor, p.x, 2)
    p.call(aten.copy_.default, p.x, p.y)
    assert p.stored(p.call(aten.neg.default, old)) == []


def listed(p: Program, *operands: Node) -> tuple[Node, list[Node]]:
    """Return a call over a list, and its elements."""
    made = p.call(aten._foreach_add.Scalar, list(operands), 1)
    return made, [p.builder.item(made, i) for i in range(len(operands))]


def test_an_element_of_a_list_is_stored_alone() -> None:
    p = Program()
    _, (first, second) = listed(p, p.x, p.y)
    p.write()
    after = p.call(aten._foreach_neg.default, [first, second])
    assert first.name in p.stored(p.builder.item(after, 0), p.builder.item(after, 1))


def test_a_list_of_other_bytes_is_not() -> None:
    p = Program()
    _, (first,) = listed(p, p.y)
    p.write()
    after = p.call(aten._foreach_neg.default, [first])
    assert p.stored(p.builder.item(after, 0)) == []


def test_a_list_that_is_used_only_before_the_write_is_not() -> None:
    p = Program()
    _, (first,) = listed(p, p.x)
    after = p.builder.item(p.call(aten._foreach_neg.default, [first]), 0)
    copied = p.call(aten.mm.default, after, after)
    p.write()
    assert p.stored(copied) == []


def test_a_list_made_of_an_old_one_is_stored_in_its_stead() -> None:
    p = Program()
    _, (first,) = listed(p, p.x)
    after = p.builder.item(p.call(aten._foreach_neg.default, [first]), 0)
    p.write()
    assert p.stored(p.call(aten.mul.Tensor, after, 2)) == [after.name]


def test_a_value_that_a_list_overwrites_is_stored() -> None:
    p = Program()
    old = p.call(aten.mul.Tensor, p.x, 2)
    p.builder.graph.call_function(aten._foreach_add_.List, ([p.x], [p.y]))
    assert p.stored(p.call(aten.neg.default, old)) == [old.name]


def test_a_value_that_inductor_stores_over_is_not() -> None:
    p = Program()
    old = p.call(aten.mul.Tensor, p.x, 2)
    p.builder.graph.call_function(aten.copy_.default, (p.x, p.y))
    # Inductor puts the readers of what it stores into itself into memory, in time.
    assert p.stored(p.call(aten.neg.default, old)) == []


def added(p: Program, *pairs: tuple[Node, Node]) -> None:
    """Add to each of some values another one, in one list."""
    p.builder.graph.call_function(aten._foreach_add_.List, tuple(map(list, zip(*pairs, strict=True))))


def rows(p: Program, first: int, end: int) -> Node:
    return p.call(aten.slice.Tensor, p.x, 0, first, end)


def test_what_elements_of_a_list_are_made_of_is_stored_where_others_are_written() -> None:
    p = Program()
    high, low = rows(p, 0, 2), rows(p, 2, 4)
    of_high, of_low = p.call(aten.mul.Tensor, high, 2), p.call(aten.mul.Tensor, low, 3)
    added(p, (high, of_low), (low, of_high))
    assert p.stored(p.x) == [of_high.name, of_low.name]


def test_what_each_element_is_made_of_by_itself_is_not() -> None:
    p = Program()
    high, low = rows(p, 0, 2), rows(p, 2, 4)
    made = [p.call(aten.neg.default, p.call(aten.mul.Tensor, part, 2)) for part in (high, low)]
    added(p, (high, made[0]), (low, made[1]))
    assert p.stored(p.x) == []


def test_what_an_element_is_made_of_in_another_order_is() -> None:
    p = Program()
    for order in (p.x, p.call(aten.t.default, p.x)):
        made = p.call(aten.mul.Tensor, order, 2)
        added(p, (p.x, p.call(aten.t.default, made)))
    first, second = p.stored(p.x)
    assert first != second


def test_what_an_element_is_made_of_other_bytes_is() -> None:
    p = Program()
    made = p.call(aten.mul.Tensor, rows(p, 0, 3), 2)
    added(p, (rows(p, 1, 4), made))
    assert p.stored(p.x) == [made.name]


def test_what_all_elements_are_made_of_is_where_one_writes_it() -> None:
    p = Program()
    total = p.call(aten.mul.Tensor, rows(p, 0, 1), 2)
    added(p, (p.y, total), (rows(p, 1, 4), total))
    assert p.stored(p.x, p.y) == []
    p = Program()
    total = p.call(aten.mul.Tensor, rows(p, 0, 1), 2)
    added(p, (rows(p, 0, 2), total), (p.y, total))
    assert p.stored(p.x, p.y) == [total.name]


def halves(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    ops.both(y[0:2], y[2:4])
    return y


def two(x: torch.Tensor) -> torch.Tensor:
    y, z = x * 2, x * 3
    ops.both(y, z)
    return y + z


@pytest.mark.parametrize(("program", "count"), [(halves, 1), (two, 0)])
def test_a_base_of_which_a_wrapper_writes_two_views_is_stored(program: Any, count: int) -> None:
    """Inductor would compute each view into memory of its own, and nothing else would see the writes."""
    gm, inputs = functional(program, arange(4, 3))
    expected = run(gm, [i.clone() for i in inputs])
    assert realize(gm.graph) == count
    for one, other in zip(expected, run(gm, inputs), strict=True):
        assert torch.equal(one, other)


def given_twice(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    ops.both(x[0:3], x[0:3])
    column = x.unfold(0, 2, 2)[0]
    column[rows] = column[rows] * 2
    return column.clone()


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_a_graph_that_is_compiled_once_more_is_right(
    dtype: torch.dtype, unoptimized: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What wrappers write are copies then: wrappers of complex values Inductor does not compile."""
    inputs = arange(4, 3).to(dtype), torch.tensor([0, 1])
    expected, given = [i.clone() for i in inputs], [i.clone() for i in inputs]
    found = iter(["nothing, but say so"])
    monkeypatch.setattr(check, "problem", lambda nodes: next(found, ""))
    torch.compiler.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        result = torch.compile(given_twice, fullgraph=True, options=inductor_options())(*given)
    assert torch.equal(result, given_twice(*expected))
    assert torch.equal(given[0], expected[0])
    assert "compiled once more without writes in place" in caplog.text


def test_a_store_into_a_window_that_it_reads_is_in_place(unoptimized: None) -> None:
    inputs = arange(4, 3), torch.tensor([0, 1])
    expected, given = [i.clone() for i in inputs], [i.clone() for i in inputs]
    torch.compiler.reset()
    with torch._inductor.config.patch(force_disable_caches=True), watching_schedules(pytest.fail):
        result = torch.compile(given_twice, fullgraph=True, options=inductor_options())(*given)
    assert torch.equal(result, given_twice(*expected))
    assert torch.equal(given[0], expected[0])
