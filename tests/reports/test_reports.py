"""Each public report, through torch.compile with our passes: values, inputs and aliases as in eager."""

from __future__ import annotations

import pytest
import torch

from pytest_reinplace.passes.verify import assert_equivalent

from . import programs
from .compiled import by_graph, by_inductor, functionalized, largest_copy, session
from .programs import PROGRAMS, Program

pytestmark = pytest.mark.filterwarnings("ignore:dynamo_pgo force disabled")

sizes = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
every = pytest.mark.parametrize("program", PROGRAMS, ids=str)


def no_copy_left(program: Program, graphs: list[torch.fx.Graph]) -> None:
    if program.missed:
        assert graphs, "the pass saw no graph"
        for graph in graphs:
            assert largest_copy(graph) < program.missed, str(graph)


@sizes
@every
def test_inductor(program: Program, dynamic: bool) -> None:
    with session(program) as graphs:
        assert_equivalent(program.fn, by_inductor(program.fn, dynamic=dynamic), program.arguments())
    no_copy_left(program, graphs)


@sizes
@every
def test_up_to_lowering(program: Program, dynamic: bool) -> None:
    with session(program) as graphs:
        assert_equivalent(program.fn, by_graph(program.fn, dynamic=dynamic), program.arguments())
    no_copy_left(program, graphs)


@every
def test_v1_wrappers_up_to_lowering(program: Program) -> None:
    with session(program) as graphs:
        compiled = by_graph(program.fn, dynamic=False, v2=False)
        assert_equivalent(functionalized(program.fn), compiled, program.arguments())
    no_copy_left(program, graphs)


def test_every_report_has_a_program() -> None:
    reports = {198031, 197829, 198094, 198131, 195451, 156786, 198033, 153389, 132196, 197408, 195285}
    reports |= {139628, 197432, 131192, 132995, 184542, 144072}
    assert {p.report for p in PROGRAMS} == reports
    missed = {195285, 139628, 197432, 131192, 132995, 184542}
    assert {p.report for p in PROGRAMS if p.missed} == missed


def test_a_copy_that_is_left_is_found() -> None:
    """The twin of the missed reports: where the caller keeps the input, a full copy has to stay."""

    def kept(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.index_put(x, [programs.index(0, 1)], v)

    program = Program(0, kept, lambda: [programs.ints(4, 4), programs.ints(2, 4)], missed=64)
    with session(program) as graphs:
        assert_equivalent(program.fn, by_graph(program.fn, dynamic=False), program.arguments())
    with pytest.raises(AssertionError):
        no_copy_left(program, graphs)
