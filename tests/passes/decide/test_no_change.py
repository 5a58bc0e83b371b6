"""Writes that leave what lies there as it is, and their neighbours, which do not."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes import reinplace
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import assert_equivalent

from ..kinds.test_in_place_forms import held, rewritten
from ..trace import arange

aten = torch.ops.aten
WHERE = torch.tensor([7, 2])


Store = Callable[[Tensor, Tensor, Tensor], Tensor]


def stored(read: slice, put: Store, element: slice = slice(0, 1)) -> int:
    """Return the bytes cloned where an element is stored elsewhere, and old elements are read afterwards."""

    def program(x: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        old = cache[read]
        new = put(cache, where, cache[element])
        return new, old.exp() + new[5]

    report, _ = rewritten(program, torch.arange(12, dtype=torch.float32), WHERE)
    return report.clone_bytes


STORES: dict[str, Store] = {
    "index_put": lambda cache, where, one: aten.index_put.default(cache, [where], one),
    "put": lambda cache, where, one: aten.put.default(cache, where[:1], one),
    "index_copy": lambda cache, where, one: aten.index_copy.default(cache, 0, where[:1], one),
    "scatter": lambda cache, where, one: aten.scatter.src(cache, 0, where[:1], one),
}


@pytest.mark.parametrize("name", STORES)
def test_the_element_beside_it_may(name: str) -> None:
    assert stored(slice(1, 2), STORES[name]) == 8
    assert stored(slice(0, 2), STORES[name]) == 12


def test_an_element_to_which_is_added_changes() -> None:
    def added(cache: Tensor, where: Tensor, one: Tensor) -> Tensor:
        return aten.index_put.default(cache, [where], one, True)

    def reduced(cache: Tensor, where: Tensor, one: Tensor) -> Tensor:
        return aten.scatter.reduce(cache, 0, where[:1], one, reduce="add")

    assert stored(slice(0, 1), added) == stored(slice(0, 1), reduced) == 8


def test_two_elements_may_change_places() -> None:
    swapped = stored(
        slice(0, 2), lambda cache, where, two: aten.index_copy.default(cache, 0, where, two), slice(0, 2)
    )
    assert swapped == 16


def rows_stored(read: slice, put: Store, source: tuple[slice, slice]) -> int:
    """Return the bytes cloned where a row is stored elsewhere, and old rows are read afterwards."""

    def program(x: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        old = cache[read]
        new = put(cache, where, cache[source])
        return new, old.exp() + new[3]

    report, _ = rewritten(program, torch.arange(24, dtype=torch.float32).view(6, 4), torch.tensor([2, 4]))
    return report.clone_bytes


ROW_STORES: dict[str, Store] = {
    "index_put": lambda cache, where, row: aten.index_put.default(cache, [where[:1]], row),
    "index_copy": lambda cache, where, row: aten.index_copy.default(cache, -2, where[:1], row),
}
FIRST = (slice(0, 1), slice(None))


@pytest.mark.parametrize("name", ROW_STORES)
def test_the_rows_beside_it_may(name: str) -> None:
    assert rows_stored(slice(1, 2), ROW_STORES[name], FIRST) == 32
    assert rows_stored(slice(0, 2), ROW_STORES[name], FIRST) == 48


@pytest.mark.parametrize(
    "put",
    [
        lambda cache, where, row: aten.index_put.default(cache, [where], row),  # two rows
        lambda cache, where, row: aten.index_put.default(cache, [where[:1]], row, True),
        lambda cache, where, row: aten.index_put.default(cache, [where[:1]], row[:, :1]),  # one element of it
        lambda cache, where, row: aten.index_add.default(cache, 0, where[:1], row),
        lambda cache, where, row: aten.index_put.default(cache, [(where[:1] > 1).expand(6)], row),
    ],
)
def test_nor_is_it_kept_where_it_may_be_written_over(put: Store) -> None:
    assert rows_stored(slice(0, 1), put, FIRST) > 16


def test_what_lies_across_rows_may_change() -> None:
    def put(cache: Tensor, where: Tensor, row: Tensor) -> Tensor:
        return aten.index_copy.default(cache, 0, where[:1], cache.view(24)[2:6].view(1, 4))

    assert rows_stored(slice(0, 2), put, FIRST) > 32


Part = Callable[[Tensor], Tensor]


@pytest.mark.parametrize(
    ("whole", "source", "dim"),
    [
        (lambda c: c, lambda c: c.view(24)[2:6].view(1, 4), 0),  # across two rows
        (lambda c: c[0:5], lambda c: c[1:6, 0:1], 1),  # as many steps away as there are columns
        (lambda c: c[1:6], lambda c: c[0:5, 0:1], 1),  # before the first column
    ],
)
def test_what_lies_between_two_slots_is_none(whole: Part, source: Part, dim: int) -> None:
    """It is as large as a slot and meets the first one, which is written."""

    def program(x: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        old = source(cache)
        return aten.index_copy.default(whole(cache), dim, first, old), old.exp()

    x = torch.arange(24.0).view(6, 4)
    report, _ = rewritten(program, x, torch.tensor([0]))
    assert report.clone_bytes == source(x).nbytes


@pytest.mark.parametrize("turned", [True, False])
def test_a_slot_that_is_stored_turned_changes(turned: bool) -> None:
    def program(x: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        old = cache[1]
        new = aten.index_put.default(cache, [where], old.t() if turned else old)
        return new, old.exp()

    report, _ = rewritten(program, torch.arange(18.0).view(2, 3, 3), torch.tensor([1]))
    assert (report.clone_bytes == 36) is not turned


@pytest.mark.parametrize("mixed", [True, False])
def test_a_slot_whose_elements_are_stored_in_another_order_changes(mixed: bool) -> None:
    def program(x: Tensor, where: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        old = cache[1]
        return aten.index_put.default(cache, [where, order] if mixed else [where], old), old.exp()

    report, _ = rewritten(
        program, torch.arange(24.0).view(6, 4), torch.tensor([1]), torch.tensor([3, 2, 1, 0])
    )
    assert "aten::exp.self" in report.clones


def test_the_only_slot_may_lie_anywhere() -> None:
    """Its stride is any number, 0 too."""

    def program(x: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
        cache = aten.as_strided.default(x + 1, [1, 4], [0, 1])
        return aten.index_copy.default(cache, 0, where, cache[0:1]), cache.exp()

    rewritten(program, torch.arange(4.0), torch.tensor([0]))


@pytest.mark.parametrize("own", [True, False])
def test_an_element_of_another_tensor_is_written_over_the_one_that_lies_there(own: bool) -> None:
    def program(x: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        cache, other = x + 1, x * 7
        old = cache[0:1]
        return aten.index_put.default(cache, [first], (cache if own else other)[0:1]), old.exp()

    report, _ = rewritten(program, torch.arange(8.0), torch.tensor([0]))
    assert "aten::exp.self" in report.clones


def test_an_index_is_not_what_is_stored() -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        cache = x * 2
        index = cache[0:1]  # it says that it is written itself
        return aten.index_put.default(cache, [index], y), index.neg()

    report, _ = rewritten(program, torch.arange(8), torch.tensor([5]))
    assert report.clones == ["aten::neg.self"]


@pytest.mark.parametrize("conjugated", [True, False])
def test_an_element_that_is_stored_conjugated_changes(conjugated: bool) -> None:
    b = GraphBuilder()
    first = b.placeholder(torch.tensor([0]))
    given = torch.complex(torch.arange(4.0), torch.arange(4.0) + 1)
    cache = b.call(aten.mul.Tensor, b.placeholder(given), 2)
    old = b.call(aten.slice.Tensor, cache, 0, 0, 1)
    source = b.call(aten._conj.default, old) if conjugated else old
    new = b.call(aten.index_put.default, cache, [first], source)
    report, _ = held(b, [new, b.call(aten.exp.default, old)])
    assert "aten::exp.self" in report.clones


def test_an_element_that_was_kept_from_before_is_not_what_lies_there() -> None:
    def program(x: Tensor, y: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        part = cache[0:1]
        new = aten.index_put.default(cache, [first], y)
        old = new[0:1]
        return aten.index_put.default(new, [first], part), old.exp()

    report, _ = rewritten(program, torch.arange(8.0), torch.tensor([50.0]), torch.tensor([0]))
    assert report.clones == ["aten::index_put.values", "aten::exp.self"]


@pytest.mark.parametrize("kept", [True, False])
def test_nor_is_it_what_a_scatter_puts_back(kept: bool) -> None:
    def program(x: Tensor, y: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        part = cache[0:1]
        new = aten.index_put.default(cache, [first], y)
        old = new[0:1]
        return aten.slice_scatter.default(new, part if kept else new[0:1], 0, 0, 1), old.exp()

    report, _ = rewritten(program, torch.arange(8.0), torch.tensor([50.0]), torch.tensor([0]))
    assert (report.clone_bytes > 0) is kept


@pytest.mark.parametrize("own", [True, False])
def test_what_a_scatter_puts_there_of_another_tensor_is_new(own: bool) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        cache, other = x + 1, x * 7
        old = cache[0:1]
        return aten.slice_scatter.default(cache, (cache if own else other)[0:1], 0, 0, 1), old.exp()

    report, _ = rewritten(program, torch.arange(8.0))
    assert (report.clone_bytes > 0) is not own


def test_slots_of_sizes_that_only_the_call_tells_are_not_compared() -> None:
    def program(x: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        old = cache[1:2]
        return aten.index_copy.default(cache, 0, where, old), old.exp()

    inputs = [torch.arange(28.0).view(7, 4), torch.tensor([1])]
    gm = make_fx(program, tracing_mode="symbolic")(*inputs)
    new = copy.deepcopy(gm)
    assert reinplace(new, order="keep").reinplaced == ["aten::index_copy.self"]
    assert_equivalent(gm, new, inputs)


@pytest.mark.parametrize("known", [True, False])
def test_no_guard_is_made_to_tell_an_element(known: bool) -> None:
    """How many elements are stored may be known only when the graph runs: then it is no single one."""

    def program(x: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        cache = x + 1
        index = aten.nonzero.default(which).view(-1)
        old = cache[:1]
        source = cache[:1] if known else aten.slice.Tensor(cache, 0, 0, index.shape[0])
        return aten.index_put.default(cache, [index], source), old.exp()

    gm = make_fx(program, tracing_mode="symbolic")(arange(12), torch.tensor([0, 1, 0, 1]))
    env = gm.graph.find_nodes(op="placeholder")[0].meta["val"].fake_mode.shape_env
    guards = len(env.guards)
    report = reinplace(gm, order="keep")
    put = next(o for o in report.outcomes if o.label == "aten::index_put.self")
    assert put.reinplaced and len(env.guards) == guards
