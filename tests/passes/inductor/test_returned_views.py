"""Outputs that AOTAutograd makes anew from inputs: views of the inputs, at the offsets of eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch

from pytest_reinplace.passes import Reason, Report, inductor_options, observe
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.graph.journal import erase
from pytest_reinplace.passes.inductor import stage
from pytest_reinplace.passes.inductor.mend.returned_views import (
    _differ,
    _is_told_by_sizes,
    return_inputs,
)

from ..trace import arange, functional

aten = torch.ops.aten
Tensor = torch.Tensor
S0 = sympy.Symbol("s0", integer=True, positive=True)


def behind(x: Tensor, k: int) -> Any:
    x[k:].mul_(2)
    return x[k:]


def several(x: Tensor, k: int) -> Any:
    x[k:].mul_(2)
    return x[k:], x[:k], x.view(4, 4)[1:, k:].t(), x


def fresh_beside(x: Tensor, k: int) -> Any:
    v = x + 1
    x.copy_(v)
    return v[k:], x[k:]


def in_halves(x: Tensor, k: int) -> Any:
    x.view(2, -1)[1, k:].mul_(2)  # what comes back of it has 2 * (s0 // 2) elements to torch, and not s0
    return x.chunk(2)[1]


def by_strides(x: Tensor, k: int) -> Any:
    x.as_strided((3, 2), (4, 1), k).mul_(3)
    return x.as_strided((3, 2), (4, 1), k)


def listed(value: Any) -> list[Tensor]:
    return list(value) if isinstance(value, tuple) else [value]


def shared(tensors: list[Tensor]) -> list[list[bool]]:
    places = [t.untyped_storage().data_ptr() for t in tensors]
    return [[one == other for other in places] for one in places]


def run(
    program: Callable[..., Any], begin: int, *numbers: int, dynamic: bool | None = True
) -> tuple[bool, list[str]]:
    """Return whether a compiled program is right for all numbers, offsets included, and what it clones."""
    compiled = torch.compile(program, fullgraph=True, dynamic=dynamic, options=inductor_options())
    right, reports = True, list[Report]()
    for k in numbers or (3, 2):
        x, y = (torch.arange(24.0)[begin : begin + 16] for _ in range(2))
        with observe(lambda report, _: reports.append(report)):
            actual = [*listed(compiled(x, k)), x]
        expected = [*listed(program(y, k)), y]
        right &= all(map(torch.equal, actual, expected)) and shared(actual) == shared(expected)
        right &= all(
            (a.stride(), a.storage_offset()) == (e.stride(), e.storage_offset())
            for a, e in zip(actual, expected, strict=True)
        )
    return right, reports[0].clones


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("begin", [0, 3])
@pytest.mark.parametrize("program", [behind, several, fresh_beside, in_halves])
def test_the_caller_gets_the_right_view(
    quick: None, program: Callable[..., Any], begin: int, dynamic: bool | None
) -> None:
    assert run(program, begin, dynamic=dynamic) == (True, [])


def test_a_view_by_strides_too(quick: None) -> None:
    assert run(by_strides, 3, 4, 3)[0]


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("regroups", [False, True])
def test_an_input_with_gaps_is_written_in_place(quick: None, regroups: bool, dynamic: bool | None) -> None:
    """The functional graph returns views of a compact value; those that sizes tell are taken of the input."""

    def program(x: Tensor, rows: Tensor) -> Any:
        first = x[0]
        x[rows] = x[rows + 1] * 2
        return first, x.view(2, 4, 4)[1] if regroups else x[:, 1:].t()

    def inputs() -> list[Tensor]:
        return [torch.arange(67.0)[3::2].unflatten(0, (8, 4)), torch.tensor([0, 2])]

    reports, given, expected = list[Report](), inputs(), inputs()
    compiled = torch.compile(program, fullgraph=True, dynamic=dynamic, options=inductor_options())
    with observe(lambda report, _: reports.append(report)):
        actual = [*compiled(*given), *given]
    results = [*program(*expected), *expected]
    torch.testing.assert_close(actual, results, check_stride=True)
    assert [t.storage_offset() for t in actual] == [t.storage_offset() for t in results]
    assert shared(actual) == shared(results)
    assert [o.reason for o in reports[0].outcomes if o.label == "aten::index_put.self"] == [
        Reason.LAYOUT if regroups else None
    ]


def test_without_it_the_view_is_another_one(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    monkeypatch.setattr(stage, "return_inputs", lambda graph, positions: [])
    assert not run(behind, 0)[0]


def test_what_the_graph_returns() -> None:
    gm, _ = functional(behind, arange(8), 3, dynamic=True)
    given = gm.graph.find_nodes(op="placeholder")
    number = next(i for i, n in enumerate(given) if isinstance(n.meta["val"], Tensor))
    assert return_inputs(gm.graph, {0: number}) == []
    ((leaf,),) = next(n for n in gm.graph.nodes if n.op == "output").args
    assert leaf.target is aten.slice.Tensor and leaf.args[0].target is aten.copy_.default
    gm.graph.lint()


def test_the_strides_asked_for_are_those_of_the_view() -> None:
    """Inductor would copy the view for those that it wrote down of the functional graph."""

    def program(x: Tensor) -> Tensor:
        x.mul_(2)
        return x[0]

    gapped = torch.arange(67.0)[3::2].unflatten(0, (8, 4))
    gm, _ = functional(program, gapped)
    (output,) = gm.graph.find_nodes(op="output")
    output.meta["original_output_strides"] = [(1,)]
    return_inputs(gm.graph, {0: 0})
    assert output.meta["original_output_strides"] == [(2,)]


def test_what_is_not_copied_into_that_input_is_asked_where_it_begins() -> None:
    gm, _ = functional(behind, arange(8), 3, dynamic=True)
    before = str(gm.graph)
    other = next(i for i, n in enumerate(gm.graph.nodes) if not isinstance(n.meta["val"], Tensor))
    asking = return_inputs(gm.graph, {0: other})
    assert [n.target for n in asking] == [aten.sym_storage_offset.default]
    erase(gm.graph, asking)
    assert str(gm.graph) == before


@pytest.mark.parametrize(
    ("target", "args", "told"),
    [
        (aten.select.int, (0, 1), True),
        (aten.as_strided.default, ([2], [1], 3), False),
        (aten.view.default, ([-1],), False),
        (aten.view_as_complex.default, (), False),
    ],
)
def test_which_views_sizes_tell(target: Any, args: tuple[Any, ...], told: bool) -> None:
    graph = torch.fx.Graph()
    view = graph.call_function(target, (graph.placeholder("x"), *args))
    assert _is_told_by_sizes(view) is told


@pytest.mark.parametrize(
    ("sizes", "others", "are_others"),
    [
        ((2, 3), (2, 3), False),
        ((2, 3), (2, 1), True),
        ((S0,), (1,), True),
        ((S0, 2), (2 * (S0 // 2), 2), False),
        ((S0, 2), (2,), True),
    ],
)
def test_sizes_that_may_be_written_in_another_way(sizes: Any, others: Any, are_others: bool) -> None:
    assert _differ(sizes, others) is _differ(others, sizes) is are_others


def test_what_is_spread_over_an_input_has_other_views() -> None:
    b = GraphBuilder()
    rows = b.placeholder(arange(2, 4))
    row = b.call(aten.neg.default, b.placeholder(arange(4)))
    b.call(aten.copy_.default, rows, row)
    gm = b.finished([b.call(aten.slice.Tensor, row, 0, 0, 2)])
    assert len(return_inputs(gm.graph, {0: 0})) == 1  # it is asked where it begins, and stays
