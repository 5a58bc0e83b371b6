"""Values that are computed in the input that takes them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from pytest_reinplace.passes import inductor_options, verify
from pytest_reinplace.passes._torch import storage_key
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.graph.alias import viewed
from pytest_reinplace.passes.inductor import computed_in_inputs
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.oracle.call import called, differences, peak
from pytest_reinplace.passes.oracle.tally import tallied
from pytest_reinplace.passes.reinplacing.facts.options import Options, Ordering
from pytest_reinplace.passes.reinplacing.run import reinplace_graph

from ..trace import arange, functional, ops

Tensor = torch.Tensor
aten: Any = torch.ops.aten
moved: list[int] = []


def rewritten(gm: GraphModule) -> None:
    """Reinplace a graph as it is for Inductor, and let values be computed in inputs."""
    reinplace_graph(gm.graph, Options(target=INDUCTOR))
    moved.append(computed_in_inputs.compute(gm.graph))
    gm.graph.lint()
    gm.recompile()


def stores(fn: Callable[..., Any], *args: Any, dynamic: bool = False) -> int:
    """Return how many values of a program are computed in inputs; the graph does the same as before."""
    gm, inputs = functional(fn, *args, dynamic=dynamic)
    expected = copy.deepcopy(gm)
    rewritten(gm)
    verify.assert_equivalent(expected, gm, inputs)
    for node in gm.graph.nodes:
        if (source := viewed(node)) is not None and isinstance(node.meta["val"], Tensor):
            whole = source.meta["val"]  # or several, that are views of one
            assert storage_key(node.meta["val"]) == storage_key(
                whole if isinstance(whole, Tensor) else whole[0]
            )
    return moved.pop()


def square() -> Tensor:
    return (torch.arange(64.0) % 7).view(8, 8)


# -- one value -----------------------------------------------------------------------------------


def zeros_added_to(out: Tensor, index: Tensor, x: Tensor) -> list[Tensor]:
    out.zero_()
    out.index_add_(0, index, x)
    return []


def divided_and_scattered(x: Tensor, index: Tensor, y: Tensor) -> Tensor:
    x.div_(y)
    x.scatter_(1, index.view(1, -1), y)
    return x.sum()


def multiplied_and_written_by_an_operator(x: Tensor, index: Tensor, y: Tensor) -> None:
    x.mul_(y)
    ops.scale(x, y)


def filled_and_multiplied(x: Tensor, index: Tensor, y: Tensor) -> Tensor:
    x.fill_(3)
    return x @ y


def added_and_scattered_into_a_part(x: Tensor, index: Tensor, y: Tensor) -> Tensor:
    x.mul_(y)
    x[2:].index_add_(1, index, y[2:])
    return x.sum()


def written_before(x: Tensor, index: Tensor, y: Tensor) -> Tensor:
    x[index] = 7
    x.mul_(y)
    return x @ y


def multiplied_and_inverted(x: Tensor, index: Tensor, y: Tensor) -> Tensor:
    """A kernel that is no product, and has no name of ours."""
    x.mul_(y)
    return torch.linalg.inv_ex(x)[1]


def reshaped(x: Tensor, index: Tensor, y: Tensor) -> Tensor:
    x.copy_((x.unsqueeze(0) * 2).squeeze(0) + y)
    return x @ y


def split_and_scattered(x: Tensor, index: Tensor, y: Tensor) -> Tensor:
    """Used through what ``split`` makes, which are views of a view."""
    x.copy_(y * 2)
    upper, lower = x.split([5, 3])
    lower.index_add_(0, index[2:5] % 3, upper[:3])
    return y + 1


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "fn",
    [
        split_and_scattered,
        multiplied_and_inverted,
        reshaped,
        zeros_added_to,
        divided_and_scattered,
        multiplied_and_written_by_an_operator,
        filled_and_multiplied,
        added_and_scattered_into_a_part,
        written_before,
    ],
)
def test_a_value_is_computed_where_it_ends(fn: Callable[..., Any], dynamic: bool) -> None:
    assert stores(fn, square(), torch.tensor([5, 2, 0, 1, 3, 6, 7, 4]), square() + 1, dynamic=dynamic) == 1


def returned(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    new = x * y
    x.copy_(new)
    return new, new @ y


def old_value_wanted_later(x: Tensor, y: Tensor) -> Tensor:
    old = x + 1
    x.mul_(y)
    return (x @ y) + old


def old_value_in_other_places(x: Tensor, y: Tensor) -> Tensor:
    x.copy_(x.flip(0) * y)
    return x @ y


def old_value_in_its_place_and_in_others(x: Tensor, y: Tensor) -> Tensor:
    x.copy_((x.flip(0) + x) * y)
    return x @ y


def old_value_in_another_shape(x: Tensor, y: Tensor) -> Tensor:
    x.copy_(x[:1] + y)
    return x @ y


def old_value_through_a_view(x: Tensor, y: Tensor) -> Tensor:
    row = x[3] * 2
    x.mul_(y)
    return (x @ y) + row


def not_in_memory(x: Tensor, y: Tensor) -> Tensor:
    """Inductor stores it once as it is."""
    x.mul_(y)
    return x + 1


def in_two_inputs(x: Tensor, y: Tensor) -> None:
    """Inductor stores it into both in one kernel."""
    x.mul_(2)
    y.copy_(x)


def a_product(x: Tensor, y: Tensor) -> Tensor:
    """A kernel of a library computes it, into memory of its own."""
    x.copy_(x @ y)
    return x @ y


def other_strides(x: Tensor, y: Tensor) -> Tensor:
    x.t().copy_(y + 1)
    return y @ (y + 1)


def convolved(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(y)
    return torch.conv2d(x.view(1, 2, 4, 8), y.view(2, 2, 4, 4)[:, :, :1, :1])


def old_value_kept_by_another_input(x: Tensor, y: Tensor) -> Tensor:
    new = x * 2
    out = new @ y
    y.copy_(x)
    x.copy_(new)
    return out


@pytest.mark.parametrize(
    "fn",
    [
        returned,
        old_value_wanted_later,
        old_value_in_other_places,
        old_value_in_its_place_and_in_others,
        old_value_in_another_shape,
        old_value_through_a_view,
        not_in_memory,
        in_two_inputs,
        a_product,
        other_strides,
        convolved,
        old_value_kept_by_another_input,
    ],
)
def test_a_value_stays_where_it_is(fn: Callable[..., Any]) -> None:
    assert stores(fn, square(), square() + 1) == 0


def test_another_view_of_a_value_is_not_the_value() -> None:
    b = GraphBuilder()
    x, y = b.placeholder(square()), b.placeholder(square())
    value = b.call(aten.mul.Tensor, y, 2)
    turned = b.call(aten.permute.default, value, [1, 0])
    product = b.call(aten.mm.default, value, value)
    b.graph.call_function(aten.copy_.default, (x, turned)).meta["val"] = x.meta["val"]
    b.graph.output((product,))
    assert computed_in_inputs.compute(b.graph) == 0


def test_an_input_that_begins_inside_its_storage_stays() -> None:
    """Views of it by an offset into the storage would be others."""
    assert stores(filled_and_multiplied, arange(9, 8).float()[1:], torch.tensor(0), square()) == 0


def test_inputs_that_share_bytes_stay() -> None:
    b = GraphBuilder()
    storage = arange(8, 4)
    x, y = b.placeholder(storage[:4]), b.placeholder(storage[2:6])
    value = b.call(aten.mul.Tensor, x, 2)
    product = b.call(aten.mm.default, value, value)
    b.graph.call_function(aten.copy_.default, (x, value)).meta["val"] = x.meta["val"]
    b.graph.output((product, b.call(aten.neg.default, y)))
    assert computed_in_inputs.compute(b.graph) == 0


def test_what_a_write_returns_is_the_input() -> None:
    b = GraphBuilder()
    x, y = b.placeholder(square()), b.placeholder(square())
    filled = b.graph.call_function(aten.fill_.Scalar, (x, 3))
    filled.meta["val"] = x.meta["val"]
    value = b.call(aten.mul.Tensor, y, 2)
    product, old = b.call(aten.mm.default, value, value), b.call(aten.neg.default, filled)
    b.graph.call_function(aten.copy_.default, (x, value)).meta["val"] = x.meta["val"]
    b.graph.output((product, old))
    assert computed_in_inputs.compute(b.graph) == 0


# -- values that outlast what they are computed from -----------------------------------------------


def used_after_a_write(x: Tensor, y: Tensor) -> Tensor:
    x.sub_(y)
    y[0] = 7
    y[torch.arange(2)] = 8
    return x + 1


def computed_from_a_value_that_is_overwritten(x: Tensor, y: Tensor) -> Tensor:
    x.sub_(y * 2 + 1)
    y[torch.arange(2)] = 7
    return x + 1


def one_of_two_in_turn(x: Tensor, y: Tensor) -> Tensor:
    """What is between is used no more when that is overwritten."""
    x.mul_(y)
    x.add_(3)
    y[torch.arange(2)] = 7
    return x + 1


def computed_from_what_is_in_memory(x: Tensor, y: Tensor) -> Tensor:
    old = y * 2
    y[torch.arange(2)] = 7
    x.sub_(old)
    y[torch.arange(2)] = 8
    return x + 1


def written_before_it_is_computed(x: Tensor, y: Tensor) -> Tensor:
    y[torch.arange(2)] = 7
    x.sub_(y)
    return x + 1


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("fn", "count"),
    [
        (used_after_a_write, 1),
        (computed_from_a_value_that_is_overwritten, 1),
        (one_of_two_in_turn, 1),
        (computed_from_what_is_in_memory, 0),
        (written_before_it_is_computed, 0),
    ],
)
def test_what_outlasts_its_sources_is_computed_where_it_ends(
    fn: Callable[..., Any], count: int, dynamic: bool
) -> None:
    assert stores(fn, square(), square() + 1, dynamic=dynamic) == count


def test_what_a_copy_overwrites_it_does_not_look_at() -> None:
    b = GraphBuilder()
    x, y, z = (b.placeholder(square()) for _ in range(3))
    value = b.call(aten.copy.default, y, z)
    b.graph.call_function(aten.fill_.Scalar, (y, 3)).meta["val"] = y.meta["val"]
    new = b.call(aten.neg.default, value)
    b.graph.call_function(aten.copy_.default, (x, value)).meta["val"] = x.meta["val"]
    b.graph.output((new,))
    assert computed_in_inputs.compute(b.graph) == 0


def test_what_outlasts_an_input_that_is_written_at_last_stays() -> None:
    """Inductor computes both in one kernel."""
    b = GraphBuilder()
    x, y = b.placeholder(square()), b.placeholder(square())
    for given, value in ((x, b.call(aten.mul.Tensor, x, 2)), (y, b.call(aten.add.Tensor, y, x))):
        b.graph.call_function(aten.copy_.default, (given, value)).meta["val"] = given.meta["val"]
    b.graph.output(())
    assert computed_in_inputs.compute(b.graph) == 0


# -- values in turn --------------------------------------------------------------------------------


def in_turn(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    z = x @ y
    x.sub_(z.relu())
    return z


def in_turn_and_a_product_added(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    x.copy_(torch.addmm(x, x, y))
    return y + 1


def in_turn_and_read_later(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    z, old = x @ y, x + 1
    x.sub_(z.relu())
    return z * old


def three_in_turn(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    z = x @ y
    x.sub_(z.relu())
    z = x @ z
    x.sub_(z.relu())
    return x @ z


def turned_over(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    z = x @ y
    x.copy_(x.flip(0) - z.relu())
    return z


@pytest.mark.parametrize(
    ("fn", "count"),
    [
        (in_turn, 1),
        (in_turn_and_a_product_added, 1),
        (in_turn_and_read_later, 0),
        (three_in_turn, 3),
        (turned_over, 0),
    ],
)
def test_values_are_in_an_input_in_turn(fn: Callable[..., Any], count: int) -> None:
    assert stores(fn, square(), square() + 1) == count


# -- inside Inductor ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("order", "held"), [("free", 0), ("keep", 64 * 64 * 4)])
def test_the_buffer_is_gone_unless_the_order_is_to_be_kept(order: Ordering, held: int) -> None:
    torch.compiler.reset()
    compiled = torch.compile(zeros_added_to, fullgraph=True, options=inductor_options(order=order))

    def given() -> list[Tensor]:
        return [torch.ones(64, 64), torch.tensor([5, 2, 5]), torch.arange(192.0).view(3, 64)]

    assert not list(differences(called(zeros_added_to, given()), called(compiled, given())))
    assert peak(compiled, given()) == held


def fields(electric: Tensor, magnetic: Tensor) -> Tensor:
    """Two fields that are computed from each other in turn, and what one of them was at a point."""
    seen = torch.zeros(3)
    for step in range(3):
        magnetic.sub_(electric[1:] - electric[:-1])
        electric[1:-1] += magnetic[1:] - magnetic[:-1]
        seen[step] = electric[4, 4]
    return seen


def summed_rows(ring: Tensor, rows: Tensor) -> Tensor:
    """What a ring forgets is in rows of the result, each computed before the ring is written again."""
    result = rows.new_zeros(3, 2, *rows.shape[1:])
    for step in range(3):
        place = rows[step, 0, :1].long() % 4
        result[step, 0] = rows[step] - ring[place].squeeze(0)
        ring[place] = rows[step : step + 1]
        if step:
            result[step, 1] = result[step - 1, 0]
    return result


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("fn", "shapes", "over"),
    [
        (fields, ((256, 256), (255, 256)), 1),
        (summed_rows, ((4, 128, 128), (3, 128, 128)), 1.2),  # torch 2.15 holds a row more
    ],
)
def test_no_more_is_held_than_in_eager(
    fn: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], over: float
) -> None:
    torch.compiler.reset()
    compiled = torch.compile(fn, fullgraph=True, options=inductor_options())

    def given() -> list[Tensor]:
        torch.manual_seed(0)
        return [torch.rand(shape) for shape in shapes]

    assert not list(differences(called(fn, given()), called(compiled, given())))
    assert peak(compiled, given()) <= over * peak(fn, given())


# -- any graph -------------------------------------------------------------------------------------


def test_random_graphs_do_the_same() -> None:
    moved.clear()
    tally = tallied(range(23_000, 23_400), rewritten, optimum=False)
    assert not tally.wrong, "\n".join(f"seed {s}: {v.message}" for s, v in tally.wrong)
    assert sum(moved) > 0


def test_a_value_that_is_wanted_is_missed_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_in_inputs._Inputs, "_are_over", lambda *args: True)
    assert tallied(range(23_000, 23_400), rewritten, optimum=False).wrong
