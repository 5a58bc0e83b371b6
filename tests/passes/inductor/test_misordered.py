"""Writes that Inductor would fuse with reads of other bytes of one buffer, each beside one that it may."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pytest_reinplace.passes import Reason, Report
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts import price
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph

from ..trace import arange, functional, ops


@pytest.fixture(autouse=True)
def no_cost_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tensors are written as large ones are."""
    monkeypatch.setattr(price, "LAUNCH", 0)


aten = torch.ops.aten
Tensor = torch.Tensor
Program = Callable[[Tensor, Tensor, Tensor], Tensor]

ROWS = 12


def decided(program: Callable[..., Tensor], *more: Tensor) -> Report:
    """Decide the graph of a program as Inductor would be given it."""
    given = arange(ROWS, 3), torch.tensor([3, 5]), arange(2, 3)
    return analyze_graph(functional(program, *(more or given))[0].graph, Options(target=INDUCTOR))


def shifted(h: Tensor) -> Tensor:
    h[1:] = h[:-1].clone()
    return h


def doubled(h: Tensor) -> Tensor:
    h[1:] = h[1:] * 2
    return h


# What makes the buffer by a copy of its own that is written: functional, because the input is kept.
BORN_WRITTEN: dict[str, Program] = {
    "index_put": lambda x, i, v: x.index_put((i,), v),
    "unsafe_index_put": lambda x, i, v: torch.ops.aten._unsafe_index_put(x, [i], v),
    "index_add": lambda x, i, v: x.index_add(0, i, v),
    "scatter_add": lambda x, i, v: x.scatter_add(0, i[:, None].expand_as(v), v),
    "as_strided_scatter": lambda x, i, v: torch.as_strided_scatter(x, v, (2, 3), (3, 1), 6),
    "diagonal_scatter": lambda x, i, v: torch.diagonal_scatter(x, v[0]),
}
# What is computed, and written for the first time.
BORN_COMPUTED: dict[str, Program] = {
    "mul": lambda x, i, v: x * 2,
    "mm": lambda x, i, v: x @ x[:3],
    "slice_scatter": lambda x, i, v: torch.slice_scatter(x, v, 0, 2, 4),
}


@pytest.mark.parametrize("name", BORN_WRITTEN)
def test_the_write_after_one_into_a_copy_is_the_second_one(name: str) -> None:
    report = decided(lambda x, i, v: shifted(BORN_WRITTEN[name](x, i, v)))
    assert "aten::slice_scatter.self" not in report.reinplaced


@pytest.mark.parametrize("name", BORN_WRITTEN)
def test_it_may_be_made_of_the_elements_that_it_replaces(name: str) -> None:
    report = decided(lambda x, i, v: doubled(BORN_WRITTEN[name](x, i, v)))
    assert Reason.LOWERING not in [o.reason for o in report.outcomes]


@pytest.mark.parametrize("name", BORN_COMPUTED)
def test_the_write_into_what_is_computed_is_the_first_one(name: str) -> None:
    report = decided(lambda x, i, v: shifted(BORN_COMPUTED[name](x, i, v)))
    (outcome,) = [o for o in report.outcomes if o.op == "aten::slice_scatter" and "x, i, v" not in o.label][
        -1:
    ]
    assert outcome.reinplaced


@pytest.mark.parametrize("is_refused", [True, False])
def test_the_copy_that_a_refused_kernel_writes_is_written(is_refused: bool) -> None:
    def program(x: Tensor, by: Tensor) -> tuple[Tensor, Tensor]:
        h = x * 2
        before = h if is_refused else by
        if not is_refused:
            return shifted(h), before.sum()
        after = h.clone()
        ops.scale(after[2:], by)
        return shifted(after), before * 3

    report = decided(program, arange(ROWS, 3), arange(1))  # type: ignore[arg-type]
    assert ("aten::slice_scatter.self" in report.reinplaced) is not is_refused


def test_what_a_list_computes_is_followed() -> None:
    def program(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        h = x.index_put((i,), v)
        torch._foreach_add_([h[1:]], [h[:-1].clone()])
        return h

    assert "aten::slice_scatter.self" not in decided(program).reinplaced


TURNED: dict[str, Callable[[Tensor], Tensor]] = {
    "transpose": lambda h: h.transpose(0, 1),
    "permute": lambda h: h.view(2, 6, 3).permute(2, 0, 1),
    "unsqueeze": lambda h: h.unsqueeze(0),
    "clone": lambda h: h.clone(),
}


@pytest.mark.parametrize("name", TURNED)
def test_what_is_turned_and_turned_back_is_stored_where_it_was(name: str) -> None:
    def program(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        x[i] = v
        if name == "clone":
            x.copy_(TURNED[name](x) * 2)
        else:
            TURNED[name](x).mul_(2)
        return x.sum()

    assert decided(program).clones == []


def test_what_is_turned_and_not_turned_back_is_stored_elsewhere() -> None:
    def program(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        x[i] = v
        square = x[:3]
        square.copy_(square.t() * 2)
        return x.sum()

    assert decided(program).clones != []


@pytest.mark.parametrize("to", ["rows", "itself"])
def test_what_is_put_by_indices_is_stored_anywhere(to: str) -> None:
    """All rows are read in order, and each is stored where an index says."""

    def program(x: Tensor, i: Tensor, rows: Tensor) -> Tensor:
        x[i] = 1.0
        if to == "rows":
            x[rows] = x * 2
        else:
            x.copy_(x * 2)
        return x.sum()

    report = decided(program, arange(ROWS, 3), torch.tensor([3, 5]), torch.arange(ROWS).flip(0))
    assert (report.clones == []) is (to == "itself")


@pytest.mark.parametrize("op", ["as_strided_scatter", "diagonal_scatter"])
def test_a_scatter_that_inductor_does_not_compute_is_written(op: str) -> None:
    """It would be a copy of the operand, and a store into that."""
    (outcome,) = decided(lambda x, i, v: BORN_WRITTEN[op](x * 2, i, v)).outcomes
    assert outcome.reinplaced and not outcome.fused


@pytest.mark.parametrize("op", ["diagonal_scatter", "slice_scatter"])
def test_what_is_scattered_into_what_is_in_memory_is_stored(op: str) -> None:
    """Into what is computed it is computed, too, and both are written when somebody needs them."""

    def program(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        h = (
            torch.diagonal_scatter(x * 2, v[0])
            if op == "diagonal_scatter"
            else (x * 2).slice_scatter(v, 0, 5, 7)
        )
        return torch.slice_scatter(h, v, 0, 2, 4)

    assert {o.fused for o in decided(program).outcomes} == {op == "slice_scatter"}


@pytest.mark.parametrize("over", ["all", "rows", "few"])
def test_a_sum_of_all_elements_is_known_before_any_is_stored(over: str) -> None:
    """That of each row, or of a few elements, may be computed where it is used."""

    def program(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        x[i] = v
        if over == "all":
            x.sub_(x.mean())
        elif over == "rows":
            x[1:].sub_(x[:-1].mean(-1, keepdim=True))
        else:
            x.sub_(x[0].mean())
        return x.sum()

    report = decided(program, arange(40, 3), torch.tensor([3, 5]), arange(2, 3))
    assert (report.clones == []) is (over == "all")


@pytest.mark.parametrize("others", ["numbers", "each other", "neighbours"])
def test_elements_of_lists_are_made_of_their_own_parts(others: str) -> None:
    """All elements are stored by one kernel, one after the other: none may be made of another's bytes."""

    def program(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        x[i] = v
        torch._foreach_mul_([x[:6], x[6:]], 0.9)
        if others == "numbers":
            torch._foreach_add_([x[:6], x[6:]], [v.sum(), v.sum() + 1])
        elif others == "each other":
            torch._foreach_add_([x[:6], x[6:]], [x[6:].clone(), x[:6].clone()])
        else:
            torch._foreach_add_([x[1:7], x[7:]], [x[:6].clone(), x[6:11].clone()])
        return x.sum()

    assert (decided(program).clones == []) is (others == "numbers")


@pytest.mark.parametrize("others", ["themselves", "neighbours", "each other"])
def test_the_first_write_of_a_list_is_no_other(others: str) -> None:
    def program(x: Tensor, i: Tensor, y: Tensor) -> Tensor:
        if others == "themselves":
            torch._foreach_add_([x[:6], x[6:]], [x[:6] * 3, x[6:] * 3])
        elif others == "neighbours":
            torch._foreach_add_([x[1:7], x[7:]], [x[:6] * 3, x[6:11] * 3])
        else:
            torch._foreach_add_([x, y], [y * 3, x * 3])
        return x.sum()

    report = decided(program, arange(ROWS, 3), torch.tensor([3, 5]), arange(ROWS, 3))
    assert (report.clones == []) is (others == "themselves")


@pytest.mark.parametrize("of", ["other", "these"])
def test_the_first_write_of_a_kernel_is_registered_before_its_readers(of: str) -> None:
    def program(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        return x.index_reduce_(0, i, (x[:2] if of == "these" else v) * 2, "prod").sum()

    assert (decided(program).clones == []) is (of == "other")


def with_names(x: Tensor, i: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return the buffer, and what keeps all scatters where offsets count from."""
    return torch.slice_scatter(x, v, 0, 2, 4), torch.as_strided(x * 3, (2,), (1,), 1)


@pytest.mark.parametrize("is_named", [True, False])
def test_a_scatter_that_is_copied_for_the_sake_of_offsets_is_written(is_named: bool) -> None:
    def program(x: Tensor, i: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        h, named = with_names(x, i, v)
        return shifted(h), named if is_named else x * 3

    last = decided(program).outcomes[-1]  # type: ignore[arg-type]
    assert last.reinplaced is not is_named


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_copy_that_a_wrapper_makes_of_an_input_is_written(is_kept: bool) -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(ROWS))
    given = x if is_kept else b.call(aten.mul.Tensor, x, 2.0)
    (h,) = b.v1(adversary.operator("bump"), x=given)[-1:] if is_kept else (given,)
    before = b.call(aten.clone.default, b.call(aten.slice.Tensor, h, 0, 0, ROWS - 1))
    new = b.call(aten.slice_scatter.default, h, before, 0, 1, ROWS)
    report = analyze_graph(b.finished([new]).graph, Options(target=INDUCTOR))
    assert ("aten::slice_scatter.self" in report.reinplaced) is not is_kept


# What is stored in x[1:7] after a first write, and whether each element is made of others in time.
MADE: dict[str, tuple[bool, Callable[[Tensor], Tensor]]] = {
    "of others": (False, lambda x: x[:6] * 2),
    "of bytes that are not written": (True, lambda x: x[7:8] * 2),
    "by a kernel": (True, lambda x: torch.ops.aten._cdist_forward(x[:6], x[:3], 2.0, None)),
    "by a reduction of several results": (False, lambda x: torch.var_mean(x[:6], -1, keepdim=True)[1]),
    "in two orders": (False, lambda x: torch.cat([both(x[1:4]), x[4:7]])),
}


def both(square: Tensor) -> Tensor:
    twice = square * 2
    return twice + twice.t()


@pytest.mark.parametrize("how", MADE)
def test_what_is_stored_is_made_in_time(how: str) -> None:
    is_right, make = MADE[how]

    def program(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        x[i] = v
        x[1:7].copy_(make(x))
        return x.sum()

    assert (decided(program).clones == []) is is_right


@pytest.mark.parametrize("is_first", [True, False])
def test_in_which_order_a_value_is_met_makes_no_difference(is_first: bool) -> None:
    def program(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        x[i] = v
        twice = x[:3] * 2
        x[:3].copy_(twice.t() + twice if is_first else twice + twice.t())
        return x.sum()

    assert decided(program).clones != []


@pytest.mark.parametrize("rows", [slice(6), slice(1, 7)])
def test_what_a_list_computes_is_fused_with_the_store_that_takes_it(rows: slice) -> None:
    """Inductor gives a list of buffers that it made new ones: nothing keeps the two kernels apart."""

    def program(x: Tensor, i: Tensor, y: Tensor) -> Tensor:
        x[i] = 1.0
        made, _ = torch._foreach_add([y[:6].sin(), y[6:].sin()], [x[:6], x[6:]])
        x[rows].add_(made)
        return x.sum()

    report = decided(program, arange(ROWS, 3), torch.tensor([3, 5]), arange(ROWS, 3))
    assert (report.clones == []) is (rows == slice(6))


@pytest.mark.parametrize("columns", [2, 3])
def test_what_is_regrouped_is_stored_elsewhere_where_there_are_gaps(columns: int) -> None:
    def program(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        x[i] = v
        x[:, :columns].copy_((x.view(-1)[: ROWS * columns] * 2).view(ROWS, columns))
        return x.sum()

    assert (decided(program).clones == []) is (columns == 3)
