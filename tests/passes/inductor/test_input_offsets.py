"""Offsets into inputs that do not begin where their storage does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_inductor_cache
from torch.fx import Graph, GraphModule, Node

from pytest_reinplace.passes import inductor_options, reinplace
from pytest_reinplace.passes.graph.emit import PART_OF_BASE, Emitter
from pytest_reinplace.passes.inductor.mend import input_offsets

from ..trace import functional, ops

aten = torch.ops.aten
Tensor = torch.Tensor


@pytest.fixture
def from_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_offsets, "counts_from_inputs", lambda: True)


@pytest.fixture
def reset() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def view_of(
    *wrapped: Callable[[Graph, Node], Node],
    offset: int | None = 5,
    dtype: torch.dtype = torch.int64,
    of_wrapper: bool = False,
) -> tuple[Graph, Node, int]:
    """Return a graph that views an input, which begins at 3, by strides; the view; how many are counted."""
    graph = Graph()
    node = graph.placeholder("given")
    node.meta["val"] = torch.arange(24).to(dtype)[3:]
    for wrap in wrapped:
        node = wrap(graph, node)
    args = (node, [2], [1]) if offset is None else (node, [2], [1], offset)
    view = graph.call_function(aten.as_strided.default, args)
    view.meta["val"] = aten.as_strided.default(node.meta["val"], *args[1:])
    if of_wrapper:
        view.meta[PART_OF_BASE] = True
    graph.output((view,))
    return graph, view, input_offsets.rebase(graph)


def sliced(graph: Graph, node: Node) -> Node:
    part = graph.call_function(aten.slice.Tensor, (node, 0, 1, 9))
    part.meta["val"] = node.meta["val"][1:9]
    return part


def computed(graph: Graph, node: Node) -> Node:
    value = graph.call_function(aten.add.Tensor, (node, 1))
    value.meta["val"] = node.meta["val"] + 1
    return value


def as_ints(graph: Graph, node: Node) -> Node:
    value = graph.call_function(aten.view.dtype, (node, torch.int32))
    value.meta["val"] = node.meta["val"].view(torch.int32)
    return value


@pytest.mark.usefixtures("from_inputs")
def test_an_offset_into_an_input_is_counted_from_it() -> None:
    _, view, count = view_of()
    assert (view.args[3], count) == (2, 1)
    assert view_of(sliced)[1].args[3] == 2  # from the input, not from its part


@pytest.mark.usefixtures("from_inputs")
def test_offsets_into_what_is_computed_stay() -> None:
    _, view, count = view_of(computed)
    assert (view.args[3], count) == (5, 0)


@pytest.mark.usefixtures("from_inputs")
@pytest.mark.parametrize("offset", [None, 1])
def test_no_offset_and_what_lies_before_the_input_stay(offset: int | None) -> None:
    _, view, count = view_of(offset=offset)
    assert (view.args[3:], count) == (() if offset is None else (1,), 0)


@pytest.mark.usefixtures("from_inputs")
def test_where_a_view_begins_is_written_out() -> None:
    """Inductor takes the offset of the buffer, not that of the view, where none is given."""
    _, view, count = view_of(sliced, offset=None)
    assert (view.args[3], count) == (view.args[0].meta["val"].storage_offset() - 3, 1)


@pytest.mark.usefixtures("from_inputs")
def test_of_what_is_not_in_memory_the_value_itself_is_viewed() -> None:
    """Inductor would make a buffer of the part alone, in which it begins at 0."""
    _, view, count = view_of(computed, sliced, offset=None)
    assert (view.args[0].target, view.args[3], count) == (aten.add.Tensor, 1, 1)


def stored(graph: Graph, node: Node) -> Node:
    fresh = graph.call_function(aten.empty_strided.default, (list(node.meta["val"].shape), [1]))
    fresh.meta["val"] = torch.empty_like(node.meta["val"])
    copy = graph.call_function(aten.copy_.default, (fresh, node))
    copy.meta["val"] = fresh.meta["val"]
    return copy


@pytest.mark.usefixtures("from_inputs")
def test_of_what_was_stored_its_memory_from_before_is_not_viewed() -> None:
    view = view_of(computed, stored, sliced, offset=None)[1]
    assert view.args[0].target is aten.slice.Tensor


def test_of_a_computed_value_the_gaps_are_made_and_not_read() -> None:
    """Inductor may put it into memory without them; what is put beside an element is nobody's."""
    graph, x, three = Graph(), torch.arange(24)[::2], torch.arange(3)
    given, source = graph.placeholder("given"), graph.placeholder("source")
    given.meta["val"], source.meta["val"] = x, three
    first = graph.call_function(aten.slice_scatter.default, (given, source, 0, 0, 3))
    first.meta["val"] = aten.slice_scatter(x, three, 0, 0, 3)
    second = graph.call_function(aten.as_strided_scatter.default, (first, source, [3], [1], 2))
    second.meta["val"] = aten.as_strided_scatter(first.meta["val"], three, [3], [1], 2)
    graph.output((second,))
    gm = GraphModule({}, graph)
    expected = gm(x, three)[0].clone()
    assert input_offsets.put_into_copies(gm.graph) == 1
    gm.recompile()
    assert torch.equal(gm(x, three)[0], expected)
    (memory,) = gm.graph.find_nodes(op="call_function", target=aten.empty.memory_format)
    assert memory.args == ([23],)


def as_doubles(graph: Graph, node: Node) -> Node:
    value = graph.call_function(aten.view.dtype, (node, torch.float64))
    value.meta["val"] = node.meta["val"].view(torch.float64)
    return value


@pytest.mark.parametrize(
    ("wrapped", "dtype", "begin"),
    [((), torch.complex64, 3), ((as_doubles,), torch.complex64, 3)],
    ids=["complex", "of complex"],
)
def test_what_a_kernel_views_for_a_wrapper_begins_where_the_base_does(
    wrapped: tuple[Callable[[Graph, Node], Node], ...], dtype: torch.dtype, begin: int
) -> None:
    """The kernel counts from the storage, and the input of a later call may begin elsewhere in its own."""
    assert view_of(*wrapped, offset=begin + 4, dtype=dtype)[2] == 0  # the program means the storage
    graph, view, count = view_of(*wrapped, offset=begin + 4, dtype=dtype, of_wrapper=True)
    assert count == 1
    assert len(view.args) == 3
    for first in (3, 7):
        given = torch.arange(24).to(dtype)[first:]
        items = given.view(view.meta["val"].dtype)
        assert torch.equal(GraphModule({}, graph)(given)[0], items[4:6])
    graph, _, _ = view_of(*wrapped, offset=begin, dtype=dtype, of_wrapper=True)
    assert not graph.find_nodes(op="call_function", target=aten.slice.Tensor)


@pytest.mark.parametrize("wrapped", [(as_ints,), (as_ints, sliced)])
def test_in_items_of_another_size_a_view_is_counted_in_what_the_kernel_returns(
    wrapped: tuple[Callable[[Graph, Node], Node], ...],
) -> None:
    _, view, count = view_of(*wrapped, offset=10, dtype=torch.int64, of_wrapper=True)
    assert (view.args[3], count) == (4, 1)


def bytes_of_some_rows(x: Tensor, count: Tensor) -> Tensor:
    n = count.item()
    torch._check(n >= 2)
    torch._check(n <= 4)
    rows = x[:n] + 1
    ops.scale(rows.view(torch.uint8)[1:, 1:], x[0, 0].to(torch.uint8))
    return rows


@pytest.mark.usefixtures("reset")
def test_bytes_of_as_many_rows_as_data_say_are_written_where_they_lie() -> None:
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(bytes_of_some_rows, fullgraph=True, options=inductor_options())
        given = torch.arange(48).view(6, 8), torch.tensor(3)
        assert torch.equal(compiled(*given), bytes_of_some_rows(*given))


def test_what_stands_for_a_part_of_a_base_is_none_itself() -> None:
    graph, view, _ = view_of(offset=5, of_wrapper=True)
    assert PART_OF_BASE not in Emitter(graph).call(view, aten.clone.default, (view,)).meta


@pytest.mark.parametrize("offset", [None, 1, 2])
def test_a_kernel_views_nothing_before_its_operand(offset: int | None) -> None:
    assert view_of(offset=offset, dtype=torch.complex64, of_wrapper=True)[2] == 0


def parts(x: Tensor) -> Tensor:
    x[0] = 2
    ops.scale(x[2:, 1:], x[1, 1:].clone())
    ops.scale(x.t()[1:, 3:], x[1:, 1].clone())
    return x[1:]


def parts_of_a_copy(x: Tensor) -> Tensor:
    copy = x.clone()
    copy.as_strided((3, 2), (7, 1), 8).mul_(3)
    x.copy_(copy * 2)
    return copy


def nothing_behind_the_last(x: Tensor) -> None:
    ops.scale(x[6:][1:, 1:], x[0, 1:].clone())


def part_of_what_is_computed(x: Tensor, other: Tensor) -> None:
    x[0:1].copy_(other[3])
    x[0] = 2
    ops.scale(x[1:3, :2], other[0, :2].clone())


@pytest.mark.usefixtures("reset")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "program", [parts, parts_of_a_copy, part_of_what_is_computed, nothing_behind_the_last]
)
def test_a_later_call_may_be_given_an_input_that_begins_elsewhere(
    program: Callable[..., Tensor | None], dynamic: bool
) -> None:
    compiled = torch.compile(program, fullgraph=True, dynamic=dynamic, options=inductor_options())
    count = program.__code__.co_argcount
    for first in (0, 4, 1):
        expected, actual = (torch.arange(first + 49 * count).to(torch.complex64) for _ in range(2))
        results = [
            function(*(memory[first + 49 * i :][:49].view(7, 7) for i in range(count)))
            for function, memory in ((program, expected), (compiled, actual))
        ]
        assert torch.equal(expected, actual)
        assert results[0] is None or torch.equal(*results)


def put_between(x: Tensor, other: Tensor) -> None:
    ops.scale(x[:2], other[:2])
    x.as_strided((3,), (2,)).add_(1)


@pytest.mark.usefixtures("reset")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.float32])
def test_what_is_put_into_a_copy_with_gaps_is_put_where_the_input_begins(
    dtype: torch.dtype, dynamic: bool
) -> None:
    compiled = torch.compile(put_between, fullgraph=True, dynamic=dynamic, options=inductor_options())
    for first in (1, 2, 0):
        expected, actual = (torch.arange(48).to(dtype) for _ in range(2))
        put_between(expected[first::2][:23], torch.ones(4, dtype=dtype))
        compiled(actual[first::2][:23], torch.ones(4, dtype=dtype))
        assert torch.equal(expected, actual)


@pytest.mark.usefixtures("from_inputs")
def test_items_of_another_dtype_and_one_size_are_counted() -> None:
    """Inductor sees through such a view."""
    _, view, count = view_of(as_ints, dtype=torch.float32)
    assert (view.args[3], count) == (2, 1)


def test_what_a_kernel_is_given_of_an_input_viewed_as_another_dtype() -> None:
    def program(x: Tensor) -> Tensor:
        ops.scale(x.unsqueeze(0).view(torch.int32).t()[10:23], torch.ones((), dtype=torch.int32))
        return x + x

    expected, actual = (torch.arange(28.0)[1:25] for _ in range(2))
    wanted = program(expected)
    found = torch.compile(program, fullgraph=True, options=inductor_options())(actual)
    assert torch.equal(expected, actual)
    assert torch.equal(wanted, found)


def test_where_the_storage_is_counted_from_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_offsets, "counts_from_inputs", lambda: False)
    assert view_of()[2] == 0


def test_a_torch_that_cannot_be_asked_is_taken_to_count_right(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object) -> None:
        raise RuntimeError("no such lowering")

    monkeypatch.setattr(input_offsets, "lowered_graph", refused)
    input_offsets.counts_from_inputs.cache_clear()
    try:
        assert input_offsets.counts_from_inputs() is False
    finally:
        input_offsets.counts_from_inputs.cache_clear()


@pytest.mark.usefixtures("reset")
def test_compiled_programs_are_right() -> None:
    """A view by strides, read and written, of an input that is itself a part."""

    def program(x: Tensor) -> Tensor:
        before = torch.as_strided(x, (3,), (2,), 4) * 2
        x.as_strided((3,), (1,), 6).add_(5)
        return before + x[1:4]

    expected, actual = torch.arange(24)[2:], torch.arange(24)[2:]
    compiled = torch.compile(program, fullgraph=True, options=inductor_options())
    assert torch.equal(program(expected), compiled(actual))
    assert torch.equal(expected, actual)


@pytest.mark.usefixtures("from_inputs")
@pytest.mark.parametrize("named", [True, False])
def test_a_symbolic_offset_is_counted_from_where_the_input_begins(named: bool) -> None:
    def program(x: Tensor, by: Tensor) -> None:
        ops.scale(x[1], by)

    gm, _ = functional(program, torch.arange(40.0)[8:24].view(4, 4), torch.ones(4), dynamic=True)
    reinplace(gm)
    (view,) = gm.graph.find_nodes(op="call_function", target=aten.as_strided.default)
    was, begin = view.args[3].meta["val"], view.args[0].meta["val"].storage_offset()
    if not named:  # no input says it, nor need one
        for node in gm.graph.find_nodes(op="placeholder"):
            if isinstance(node.meta["val"], torch.SymInt) and node.meta["val"].node.expr == begin.node.expr:
                node.meta["val"] = 8
    assert input_offsets.rebase(gm.graph) == 1
    assert view.args[3].meta["val"].node.expr == was.node.expr - begin.node.expr
    gm.graph.lint()


def left(x: Tensor) -> None:
    ops.scale(x[1:3, 1:3], x[4:, :2].clone())


def right(x: Tensor) -> None:
    ops.scale(x[1:3, 2:4], x[4:, :2].clone())


def test_graphs_of_one_text_whose_inputs_begin_elsewhere_are_two_for_the_cache() -> None:
    """``left`` names element 13 where the input begins at 4, and ``right`` where it begins at 3."""
    hits = []
    with fresh_inductor_cache():
        for function, at in ((left, 4), (right, 3), (left, 4)):
            torch.compiler.reset()
            counters.clear()
            expected, actual = torch.arange(64.0), torch.arange(64.0)
            function(expected[at : at + 48].view(6, 8))
            torch.compile(function, fullgraph=True, options=inductor_options())(
                actual[at : at + 48].view(6, 8)
            )
            assert torch.equal(actual, expected)
            hits.append(counters["inductor"]["fxgraph_cache_miss"] == 0)
    assert hits == [False, False, True]
