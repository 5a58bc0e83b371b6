"""Writes that Inductor would fuse with reads of other bytes of one buffer, each beside one that it may."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pytest_reinplace.passes import Reason, Report
from pytest_reinplace.passes.options import Options
from pytest_reinplace.passes.reinplace import analyze_graph

from .trace import arange, functional, ops

Tensor = torch.Tensor
Program = Callable[[Tensor, Tensor, Tensor], Tensor]

ROWS = 12


def decided(program: Callable[..., Tensor], *more: Tensor) -> Report:
    """Decide the graph of a program as Inductor would be given it."""
    given = arange(ROWS, 3), torch.tensor([3, 5]), arange(2, 3)
    return analyze_graph(functional(program, *(more or given))[0].graph, Options(lowered=True))


def shifted(h: Tensor) -> Tensor:
    h[1:] = h[:-1].clone()
    return h


def doubled(h: Tensor) -> Tensor:
    h[1:] = h[1:] * 2
    return h


# What makes the buffer by a copy of its own that is written: functional, because the input is kept.
BORN_WRITTEN: dict[str, Program] = {
    "index_put": lambda x, i, v: x.index_put((i,), v),
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
