"""Views that wrappers make of inputs that begin inside their storage, before and after stores into them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.graph import program_notes
from pytest_reinplace.passes.inductor.mend.wrapper_views import count_from_bases, move_with_bases
from pytest_reinplace.passes.oracle.setting import Setting

from ..trace import functional, ops

Tensor = torch.Tensor
ONE = torch.ones(1)


def selected(x: Tensor) -> None:
    x[0] = 7.0
    ops.scale(x[1:2, :2], ONE)


def overwritten(x: Tensor) -> None:
    x[:] = torch.arange(24.0).view(6, 4)
    ops.scale(x[1:3, 1:3], ONE)
    ops.scale(x[1:3], ONE)


def in_turns(x: Tensor) -> None:
    ops.scale(x[1:3], ONE)
    ops.scale(x[2:, 1:], ONE)
    x[3:5].add_(1)
    ops.some([x[1:2, :1], x[3:]], x[1:2, 2:])


def transposed(x: Tensor) -> None:
    x.t()[0] = 5.0
    ops.scale(x.t()[1:3, 1:3], ONE)


def narrowed(x: Tensor) -> None:
    y = x.narrow(0, 1, 4)
    y.narrow(1, 1, 3).mul_(2)
    ops.scale(y.narrow(0, 1, 2).narrow(1, 1, 2), ONE)


def computed(x: Tensor) -> None:
    y = x[1:] * 2
    y.copy_(x[:5])
    ops.scale(y[1:3, 1:3], ONE)
    x[1:] += y


def two_slices(x: Tensor) -> Tensor:
    ops.scale(x[1:3], ONE)
    ops.scale(x[2:, 1:], ONE)
    return x + 1


def copied_then_listed(x: Tensor) -> Tensor:
    part = x[1:].reshape(-1)[:3] * 1
    x[0] = part.sum()
    ops.some([x[:1], x[3:]], x[1:2, :2])
    return x + 1


def selected_then_two(x: Tensor) -> None:
    x[0] = 7.0
    ops.both(x[3:], x[1:2, :2])


def put(x: Tensor) -> None:
    x.index_put_((torch.tensor([0]),), torch.tensor(7.0))
    ops.scale(x[1:3, :2], ONE)


def multiplied(x: Tensor) -> None:
    x.mul_(3)
    ops.scale(x[1:3, :2], ONE)


def sliced(x: Tensor) -> None:
    x[3:5] = 7.0
    ops.scale(x[1:3, 1:3], ONE)


def filled_by_a_mask(x: Tensor) -> None:
    x.masked_fill_(x > 20, 1.0)
    ops.scale(x.view(3, 8)[1:, 2:5], ONE)


def row_before_all(x: Tensor) -> None:
    row = x[1]
    x.mul_(3)
    ops.scale(row, ONE)


def viewed_before_all(x: Tensor) -> None:
    row, part = x[1], x[1:, 2:]
    x.mul_(3)
    ops.scale(row, ONE)
    x.masked_fill_(x > 60, 1.0)
    ops.scale(part, ONE)


def viewed_before_itself(x: Tensor) -> None:
    row, part = x[1], x.t()[1:3, 1:3]
    row.add_(row)
    ops.scale(row, ONE)
    part.diagonal().add_(1)
    ops.some([part, x[5:]], row[:2])


def viewed_before_and_after(x: Tensor) -> None:
    rows, ends = x[1:3], x[:, ::3]
    x.index_put_((torch.tensor([0, 1]),), x[2:4].clone())
    ops.both(rows, ends[4:])
    x.index_add_(0, torch.tensor([1, 2]), x[3:5].clone())
    ops.scale(x[1:3], ONE)
    ops.scale(ends, ONE)
    ops.scale(rows, ONE)


Program = Callable[[Tensor], Tensor | None]
VIEWED_BEFORE: list[Program] = [
    row_before_all,
    viewed_before_all,
    viewed_before_itself,
    viewed_before_and_after,
]
PROGRAMS: list[Program] = [
    *(selected, overwritten, in_turns, transposed, narrowed, computed),
    *(two_slices, copied_then_listed, selected_then_two, put, multiplied, sliced, filled_by_a_mask),
    *VIEWED_BEFORE,
]


def part(begin: int) -> Tensor:
    return torch.arange(48.0)[begin : begin + 24].view(6, 4)


def whole(part_of: Tensor) -> Tensor:
    """Return all of the storage."""
    return torch.as_strided(part_of, (48,), (1,), 0)


def wrong(programs: list[Program], dynamic: bool = False, begin: int = 9) -> list[Program]:
    """Compile programs together, each of an input of its own, and return those that are wrong."""

    def every(inputs: list[Tensor]) -> list[Tensor | None]:
        return [program(x) for program, x in zip(programs, inputs, strict=True)]

    given, expected = ([part(begin) for _ in programs] for _ in range(2))
    results = every(expected)
    torch.compiler.reset()
    FakeTensorMode.cache_clear()  # what comes from the cache begins elsewhere than what is computed
    actual = torch.compile(every, fullgraph=True, dynamic=dynamic, options=inductor_options())(given)
    found: list[Program] = []
    for i, program in enumerate(programs):
        is_same = torch.equal(whole(given[i]), whole(expected[i]))
        if not is_same or not (results[i] is None or torch.equal(actual[i], results[i])):
            found.append(program)
    return found


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_right_elements_are_written(dynamic: bool) -> None:
    assert wrong(PROGRAMS, dynamic) == []


@pytest.mark.usefixtures("quick")
def test_without_it_others_are() -> None:
    """The twin: of an input that begins where its storage does the right ones are written all the same."""
    with Setting(without=("slices-from-storage", "offset-of-a-view", "offset-after-a-store")).in_force():
        assert narrowed in wrong([transposed, narrowed, sliced])  # on torch 2.11 and 2.13 all three
        assert wrong([transposed, narrowed, sliced], begin=0) == []


@pytest.mark.usefixtures("quick")
def test_views_made_before_a_store_are_written_elsewhere_without_it() -> None:
    """The twin, for what is noted of the program."""
    with Setting(without=("offset-before-a-store",)).in_force():
        assert wrong([row_before_all]) == [row_before_all]
        assert wrong([row_before_all], begin=0) == []


ROWS = (6, 4), (4, 1)  # the layout of a part


def places(program: Callable[..., None], *args: Tensor) -> list[Any]:
    """Return where the calls of a program find what they write."""
    found: list[Any] = []

    def backend(gm: GraphModule, _: Any) -> Any:
        program_notes.note(gm.graph)
        notes = [node.meta.get("custom", {}).get("pytest_reinplace") for node in gm.graph.nodes]
        found.extend(note["places"] for note in notes if note)
        return gm

    torch._dynamo.reset()
    torch.compile(program, backend=backend, fullgraph=True)(*args)
    return found


def test_places_in_inputs_are_noted() -> None:
    def program(x: Tensor) -> None:
        ops.some([x[1:2, :1], (x + 1)[3:]], x[1:2, 2:])

    assert places(program, part(9)) == [
        {"xs[0]": (4, ((1, 1), (4, 1)), ROWS), "extra": (6, ((1, 2), (4, 1)), ROWS)}
    ]
    assert places(program, part(0)) == []


def test_inputs_may_share_a_storage() -> None:
    def program(x: Tensor, y: Tensor) -> None:
        ops.both(x[1:].split(2)[1], y.t()[0])

    storage = torch.arange(60.0)
    given = storage[9:33].view(6, 4), storage[36:60].view(6, 4)
    assert places(program, *given) == [{"x": (12, ((2, 4), (4, 1)), ROWS), "y": (0, ((6,), (4,)), ROWS)}]


def with_gaps(x: Tensor) -> Tensor:
    rows, ends = x[3:], x[1:2, :2]
    x[:, 3] = x[:, 0] * 2
    x.mul_(3)
    ops.both(rows, ends)
    return x + 1


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("begin", [0, 1])
def test_a_value_over_an_input_with_gaps_has_none(begin: int) -> None:
    """The twin of what is counted by the input: here it is laid out otherwise."""
    expected, given = (torch.arange(60.0).view(6, 10)[:, begin : begin + 8] for _ in range(2))
    torch.compiler.reset()
    compiled = torch.compile(with_gaps, fullgraph=True, options=inductor_options())
    assert torch.equal(compiled(given), with_gaps(expected))
    assert torch.equal(given, expected)


def test_nothing_is_noted_where_a_program_gives_other_memory() -> None:
    def moved(x: Tensor) -> None:
        row = x[1]
        ops.scale(row, ONE)
        row.as_strided_((4,), (1,), 20)

    assert places(moved, part(9)) == []


def wrapper_of(gm: Any) -> Any:
    return next(n for n in gm.graph.nodes if "auto_functionalized" in str(n.target))


@pytest.mark.parametrize("dynamic", [False, True])
def test_slices_count_from_their_base(dynamic: bool) -> None:
    gm, _ = functional(in_turns, part(8), dynamic=dynamic)
    count_from_bases(gm.graph)
    kwargs = wrapper_of(gm).kwargs
    assert (kwargs["_x_slice_start"], kwargs["_x_slice_end"]) == (1, 3)
    assert count_from_bases(gm.graph) == 0  # once
    gm.graph.lint()


def test_offsets_move_along_with_a_base_that_begins_elsewhere_later() -> None:
    gm, _ = functional(selected, part(8))
    wrapper = wrapper_of(gm)
    base, offset = wrapper.kwargs["_all_bases"][0], wrapper.kwargs["_x_storage_offset"]
    count_from_bases(gm.graph)
    assert move_with_bases(gm.graph) == 0
    begin = base.meta["val"].storage_offset()
    mode = base.meta["val"].fake_mode
    with mode:
        base.meta["val"] = torch.empty(40)[3:27].view(6, 4)
    assert move_with_bases(gm.graph) == 1
    assert wrapper.kwargs["_x_storage_offset"] == offset - begin + 3
    assert move_with_bases(gm.graph) == 0
