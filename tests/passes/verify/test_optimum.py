"""minimum_clone_bytes and copied_bytes: on graphs small enough to know the answer by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Node

from pytest_reinplace.passes import ReinplaceError, reinplace
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import copied_bytes, minimum_clone_bytes

aten = torch.ops.aten
Build = Callable[[GraphBuilder, Node], list[Node]]

BYTES = 6 * 8  # of the one input


def built(build: Build, **more: Any) -> tuple[GraphModule, list[torch.Tensor]]:
    builder = GraphBuilder()
    node = builder.placeholder(torch.arange(6) * 11 + 5)
    others = {name: builder.placeholder(tensor) for name, tensor in more.items()}
    return builder.finished(build(builder, node, **others)), builder.inputs


def least(build: Build, **more: Any) -> int:
    return minimum_clone_bytes(*built(build, **more))


def mix(b: GraphBuilder, node: Node, other: Node) -> Node:
    return b.v1(adversary.operator("mix"), x=node, other=other)[1]


def bump(b: GraphBuilder, node: Node) -> Node:
    return b.v1(adversary.operator("bump"), x=node)[1]


def test_an_input_that_is_kept_has_to_be_copied() -> None:
    assert least(lambda b, x: [bump(b, x)]) == BYTES


def test_an_input_that_is_written_back_has_not() -> None:
    def update(b: GraphBuilder, x: Node) -> list[Node]:
        y = bump(b, x)
        b.call(aten.copy_.default, x, y)
        return [b.call(aten.sum.default, y)]

    assert least(update) == 0


def test_an_old_value_that_is_read_later_costs_one_copy() -> None:
    def update(b: GraphBuilder, x: Node) -> list[Node]:
        y = bump(b, x)
        b.call(aten.copy_.default, x, y)
        return [b.call(aten.neg.default, x)]

    def read_first(b: GraphBuilder, x: Node) -> list[Node]:
        old = b.call(aten.neg.default, x)
        b.call(aten.copy_.default, x, bump(b, x))
        return [old]

    # The epilogue comes before the reader here, so the reader sees the new value anyway.
    assert least(update) == 0
    assert least(read_first) == 0

    def between(b: GraphBuilder, x: Node) -> list[Node]:
        y = bump(b, x)
        old = b.call(aten.neg.default, x)
        b.call(aten.copy_.default, x, y)
        return [old]

    assert least(between) == 2 * BYTES  # the clone, and the copy back


def test_a_result_that_is_returned_is_copied_once() -> None:
    def update(b: GraphBuilder, x: Node) -> list[Node]:
        y = bump(b, x)
        b.call(aten.copy_.default, x, y)
        return [y]

    def part(b: GraphBuilder, x: Node) -> list[Node]:
        y = bump(b, x)
        b.call(aten.copy_.default, x, y)
        return [b.call(aten.slice.Tensor, y, 0, 0, 2)]

    assert least(update) == BYTES
    assert least(part) == 2 * 8


def test_a_call_that_reads_what_it_writes() -> None:
    def same(b: GraphBuilder, x: Node) -> list[Node]:
        y = b.call(aten.neg.default, x)
        return [mix(b, y, y)]

    def part(b: GraphBuilder, x: Node) -> list[Node]:
        y = b.call(aten.neg.default, x)
        return [mix(b, y, b.call(aten.slice.Tensor, y, 0, 1, 3))]

    def beside(b: GraphBuilder, x: Node) -> list[Node]:
        y = b.call(aten.neg.default, x)
        new = mix(b, b.call(aten.slice.Tensor, y, 0, 0, 3), b.call(aten.slice.Tensor, y, 0, 3, 6))
        return [b.call(aten.neg.default, new)]

    assert least(same) == BYTES
    assert least(part) == 2 * 8  # the operand is copied, not what is written
    assert least(beside) == 0


def test_scatters_and_index_puts() -> None:
    def scatter(b: GraphBuilder, x: Node, v: Node) -> list[Node]:
        b.call(aten.copy_.default, x, b.call(aten.slice_scatter.default, x, v, 0, 1, 3))
        return [v]

    def shift(b: GraphBuilder, x: Node, v: Node) -> list[Node]:
        part = b.call(aten.slice.Tensor, x, 0, 0, 5)
        b.call(aten.copy_.default, x, b.call(aten.slice_scatter.default, x, part, 0, 1, 6))
        return [v]

    def put(b: GraphBuilder, x: Node, v: Node) -> list[Node]:
        return [b.call(aten.index_put.default, x, [v], v)]

    v = torch.tensor([0, 1])
    assert least(scatter, v=v) == 0
    assert least(shift, v=v) == 5 * 8
    assert least(put, v=v) == BYTES


def test_clones() -> None:
    def needed(b: GraphBuilder, x: Node) -> list[Node]:
        return [bump(b, b.call(aten.clone.default, x))]

    def idle(b: GraphBuilder, x: Node) -> list[Node]:
        return [b.call(aten.neg.default, b.call(aten.clone.default, x))]

    assert least(needed) == BYTES  # one of the two copies is enough
    assert least(idle) == 0


def test_lists_are_decided_element_by_element() -> None:
    def many(b: GraphBuilder, x: Node) -> list[Node]:
        one, two = b.call(aten.neg.default, x), b.call(aten.alias.default, x)
        done = b.v1(adversary.operator("many"), xs=[one, two], other=x)[1]
        return [b.call(aten.add.Tensor, *done)]

    assert least(many) == BYTES


def test_the_search_is_for_small_graphs() -> None:
    def long(b: GraphBuilder, x: Node) -> list[Node]:
        for _ in range(15):
            x = bump(b, x)
        return [x]

    with pytest.raises(ReinplaceError, match="at most 14 candidates, got 15"):
        least(long)


def test_the_search_stops_below_a_known_figure() -> None:
    gm, inputs = built(lambda b, x: [bump(b, x)])
    assert minimum_clone_bytes(gm, inputs, below=8) == 8
    assert minimum_clone_bytes(gm, inputs, below=1000) == BYTES


def test_copied_bytes_of_a_functional_and_a_rewritten_graph() -> None:
    def update(b: GraphBuilder, x: Node) -> list[Node]:
        kept = bump(b, x)
        y = b.v2(adversary.operator("bump"), {"x": (x, b.call(aten.slice.Tensor, x, 0, 0, 2))})[1]
        b.call(aten.copy_.default, x, y)
        return [kept]

    gm, inputs = built(update)
    assert copied_bytes(gm) == 3 * BYTES
    rewritten, _ = built(update)
    reinplace(rewritten)
    assert copied_bytes(rewritten, gm) == BYTES == minimum_clone_bytes(gm, inputs)


def test_a_write_of_a_part_is_no_copy() -> None:
    def update(b: GraphBuilder, x: Node, v: Node) -> list[Node]:
        b.call(aten.copy_.default, x, b.call(aten.slice_scatter.default, x, v, 0, 1, 3))
        return [v]

    gm, _ = built(update, v=torch.tensor([7, 8]))
    rewritten, _ = built(update, v=torch.tensor([7, 8]))
    reinplace(rewritten)
    assert any(n.target is aten.copy_.default for n in rewritten.graph.nodes)
    assert copied_bytes(rewritten, gm) == 0


def put_rows(start: int) -> Build:
    def build(b: GraphBuilder, x: Node) -> list[Node]:
        index = b.call(aten.arange.start_step, 4, 6, 1, dtype=torch.int64, device=torch.device("cpu"))
        source = b.call(aten.slice.Tensor, x, 0, start, start + 2)
        return [b.call(aten.sum.default, b.call(aten.put.default, x, index, source))]

    return build


@pytest.mark.parametrize("start", [4, 0])
def test_what_other_indices_would_change_is_not_legal_by_luck(start: int) -> None:
    # With start 4 the elements are put back where they were, but no compiler can know that.
    assert least(put_rows(start)) == BYTES


@pytest.mark.parametrize(("by", "rest"), [(3, 0), (2, 1)])
@pytest.mark.parametrize(("elements", "nbytes"), [(6, 2 * 8), (4, 0)])
def test_what_another_mask_would_take_is_not_legal_by_luck(
    elements: int, nbytes: int, by: int, rest: int
) -> None:
    def build(b: GraphBuilder, x: Node) -> list[Node]:
        numbers = b.call(aten.arange.start_step, 0, 6, 1, dtype=torch.int64, device=torch.device("cpu"))
        mask = b.call(aten.eq.Scalar, b.call(aten.remainder.Scalar, numbers, by), rest)
        into, read = b.call(aten.neg.default, x), b.call(aten.slice.Tensor, x, 0, 0, elements)
        new = bump(b, b.call(aten.slice.Tensor, x, 0, 4, 6))
        late = b.call(aten.sum.default, b.call(aten.masked_scatter.default, into, mask, read))
        b.call(aten.copy_.default, x, b.call(aten.slice_scatter.default, x, new, 0, 4, 6))
        return [late]

    assert least(build) == nbytes


@pytest.mark.parametrize(("elements", "nbytes"), [(6, 2 * 8), (4, 0)])
def test_what_a_kernel_is_given_counts_although_it_makes_nothing_of_it(elements: int, nbytes: int) -> None:
    def build(b: GraphBuilder, x: Node) -> list[Node]:
        nothing = b.call(aten.slice.Tensor, b.call(aten.neg.default, x), 0, 0, 0)
        read = b.call(aten.slice.Tensor, x, 0, 0, elements)
        new = bump(b, b.call(aten.slice.Tensor, x, 0, 4, 6))
        made = b.v1(adversary.operator("halves"), x=nothing, other=read)[1]
        b.call(aten.copy_.default, x, b.call(aten.slice_scatter.default, x, new, 0, 4, 6))
        return [made]

    assert least(build) == nbytes


@pytest.mark.parametrize(("name", "nbytes"), [("produce", 3 * BYTES), ("overwrite", 0)])
def test_a_kernel_may_look_at_all_of_a_base_that_it_is_given(name: str, nbytes: int) -> None:
    """Also where it overwrites all of it through one argument, and reads it through another."""

    def build(b: GraphBuilder, x: Node) -> list[Node]:
        new = bump(b, b.call(aten.clone.default, x))
        base = b.call(aten.view.default, x, [6])
        views = {"out": (base, base)} | ({"state": (base, base)} if name == "produce" else {})
        made = b.v2(adversary.operator(name), views, other=new)[-1]
        b.call(aten.copy_.default, x, new)
        return [b.call(aten.sum.default, made)]

    assert least(build) == nbytes


def test_what_other_given_indices_would_leave_is_not_legal_by_luck() -> None:
    def build(b: GraphBuilder, x: Node, index: Node) -> list[Node]:
        new = bump(b, x)
        late = b.call(aten.sum.default, b.call(aten.index_put.default, x, [index], new))
        b.call(aten.copy_.default, x, new)
        return [late]

    def twin(b: GraphBuilder, x: Node, index: Node) -> list[Node]:
        into = b.call(aten.neg.default, x)
        new = bump(b, x)
        late = b.call(aten.sum.default, b.call(aten.index_put.default, into, [index], new))
        b.call(aten.copy_.default, x, new)
        return [late]

    # These indices name every row, so that nothing is left of what was there; others need not.
    index = torch.tensor([3, 1, 2, 0, 5, 4])
    assert (least(build, index=index), least(twin, index=index)) == (2 * BYTES, 0)


def test_numbers_that_are_computed_are_others_too() -> None:
    def build(b: GraphBuilder, x: Node, *, late: bool) -> list[Node]:
        old = b.call(aten.fill.Scalar, x, 2013)
        index = b.call(aten.remainder.Scalar, b.call(aten.slice.Tensor, old, 0, 0, 1), 6)
        seen = b.call(aten.slice.Tensor, old, 0, 0, 2)
        first = seen if late else b.call(aten.neg.default, seen)
        new = b.call(aten.index_put.default, old, [index], b.call(aten.sum.default, x))
        second = b.call(aten.neg.default, seen) if late else first
        b.call(aten.copy_.default, x, new)
        return [second]

    def read_late(b: GraphBuilder, x: Node) -> list[Node]:
        return build(b, x, late=True)

    def read_early(b: GraphBuilder, x: Node) -> list[Node]:
        return build(b, x, late=False)

    assert least(read_late) > least(read_early)


def test_what_is_put_back_whatever_it_holds_is_legal() -> None:
    def build(b: GraphBuilder, x: Node) -> list[Node]:
        source = b.call(aten.slice.Tensor, x, 0, 4, 6)
        return [b.call(aten.sum.default, b.call(aten.slice_scatter.default, x, source, 0, 4, 6))]

    assert least(build) == 0


@pytest.mark.parametrize("shared", [True, False])
def test_the_end_of_fresh_memory_is_a_copy_only_where_nobody_uses_its_beginning(shared: bool) -> None:
    b = GraphBuilder()
    given = b.placeholder(torch.arange(4.0))
    memory = b.call(aten.empty_strided.default, [8], [1], dtype=torch.float32)
    end = b.call(aten.as_strided.default, memory, [4], [1], 4)
    written = b.call(aten.copy_.default, end, given)
    beginning = b.call(aten.as_strided.default, memory, [4], [1], 0) if shared else given
    gm = b.finished([b.call(aten.add.Tensor, written, beginning)])
    functional = GraphBuilder()
    assert copied_bytes(gm, functional.finished([functional.placeholder(torch.arange(4.0))])) == 16 * (
        not shared
    )


def test_two_inputs_that_hold_the_same_are_not_the_same() -> None:
    def exchange(b: GraphBuilder, x: Node, y: Node) -> list[Node]:
        old = b.call(aten.clone.default, x)
        b.call(aten.copy_.default, x, y)
        b.call(aten.copy_.default, y, old)
        return [b.call(aten.sum.default, x)]

    assert least(exchange, y=torch.arange(6) * 11 + 5) == 3 * BYTES


@pytest.mark.parametrize("by_kernel", [True, False])
def test_a_kernel_may_ask_for_the_stride_of_a_dimension_of_one(by_kernel: bool) -> None:
    def update(b: GraphBuilder, x: Node, wide: Node) -> list[Node]:
        index = b.call(aten.arange.default, 1)
        new = b.call(aten.index_fill.int_Scalar, wide, 0, index, 3)
        b.call(aten.copy_.default, wide, new)
        one = b.call(aten.slice.Tensor, new, 0, 5, 6)
        return [mix(b, b.call(aten.neg.default, x), one) if by_kernel else b.call(aten.neg.default, one)]

    assert least(update, wide=torch.arange(12)[::2]) == (2 * BYTES if by_kernel else 0)
