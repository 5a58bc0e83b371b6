"""Real and imaginary parts of a complex tensor, written by operators."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.graph.program_notes import real_views
from pytest_reinplace.passes.inductor.defects import undefended
from pytest_reinplace.passes.inductor.mend.real_views import count_in_reals

from ..trace import arange, ops

Tensor = torch.Tensor
BY = torch.tensor(3.0)


def part_of_a_computed_one(c: Tensor) -> Tensor:
    d = c + 1
    ops.scale(d.real[1:3], BY)
    return d


def part_of_an_input(c: Tensor) -> Tensor:
    ops.scale(torch.view_as_real(c)[:2, 1], BY)
    return c + 1


def imaginary_parts_of_rows(c: Tensor) -> Tensor:
    d = (c * 2).view(2, 3)
    ops.scale(d[1:].imag.t(), BY)
    d.mul_(2)
    return d


def both(c: Tensor) -> Tensor:
    d = c + 1
    ops.scale(d.imag, d.real)
    ops.scale(d, BY)
    return d


def all_imaginary_parts(c: Tensor) -> Tensor:
    d = c + 1
    ops.scale(d.imag, BY)
    return d


def real_parts_of_columns(c: Tensor) -> Tensor:
    ops.scale(c.view(3, 2)[:, 1:].real, BY)
    return c.conj() * 2


PARTS = (part_of_a_computed_one, part_of_an_input, imaginary_parts_of_rows)
PROGRAMS = (*PARTS, both, all_imaginary_parts, real_parts_of_columns)


def outcome(program: Any, dynamic: bool) -> str:
    """Return what a compiled program is: ``right``, ``wrong`` or ``fails``."""
    torch.compiler.reset()
    expected, c = (torch.complex(arange(6), arange(6) + 7) for _ in range(2))
    result = program(expected)
    compiled = torch.compile(program, fullgraph=True, dynamic=dynamic, options=inductor_options())
    try:
        is_right = torch.allclose(compiled(c), result)
    except Exception:  # noqa: BLE001  (whatever it is, it is not right)
        return "fails"
    return "right" if is_right and torch.allclose(c, expected) else "wrong"


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_they_are_written_where_they_are(program: Any, dynamic: bool) -> None:
    assert outcome(program, dynamic) == "right"


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("program", PARTS)
def test_taken_for_complex_numbers_they_are_not(program: Any) -> None:
    """The twin."""
    with undefended("real-view-of-complex"):
        assert outcome(program, dynamic=False) != "right"


def wrapped(*, names: list[str]) -> Any:
    """A wrapper that scales a strided part of a complex tensor, with notes of what is real."""
    b = GraphBuilder()
    c, by = b.placeholder(torch.complex(arange(6), arange(6))), b.placeholder(BY)
    _, new = b.v2(
        ops.scale.default, {"x": (c, b.call(torch.ops.aten.as_strided.default, c, [2], [2], 1))}, by=by
    )
    (node,) = new.all_input_nodes
    node.meta["custom"] = {"pytest_reinplace": {"call": "reinplace_test::scale", "shared": [], "real": names}}
    return b.finished([new]).graph


def test_a_base_becomes_real_and_its_new_value_complex() -> None:
    graph = wrapped(names=["x"])
    assert count_in_reals(graph) == 1
    graph.lint()
    (output,) = graph.find_nodes(op="output")
    assert output.args[0][0].target is torch.ops.aten.view_as_complex.default
    assert output.args[0][0].meta["val"].is_complex()
    assert count_in_reals(graph) == 0


def test_what_is_complex_stays_so() -> None:
    graph = wrapped(names=["by"])
    before = str(graph)
    assert count_in_reals(graph) == 0 and str(graph) == before
    assert [real_views(n) for n in graph.nodes if real_views(n)] == [{"by"}]
