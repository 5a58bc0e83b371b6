"""What only a real call tells: its branches and turns, what calls into libraries take, what is released."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._inductor import config
from torch._inductor.codecache import CppWrapperCodeCache

from .measured import memory_of, only, taken_by
from .programs import Counting, cond, loop, ones, product, scratch

pytestmark = pytest.mark.usefixtures("unoptimized")


def test_what_an_operator_takes_for_itself_is_named() -> None:
    program = taken_by(scratch, ones(8))
    assert program.taken is not None
    (workspace,) = program.workspaces
    # Its room, and the number that is read from it is a view; the sum is its result.
    assert (workspace.operator, workspace.nbytes) == ("lowertest::scratch", 4000)
    assert "programs.py:" in workspace.source
    assert (program.taken.peak, program.peak, program.peak_at) == (64, 4064, workspace.position)
    assert program.workspace_at_peak == workspace


def test_the_branch_that_was_taken_is_told() -> None:
    taken = [taken_by(cond, torch.tensor(p), ones(8, 8)).taken for p in (True, False)]
    assert [one.peak if one else None for one in taken] == [256, 260]
    assert [one.paths if one else None for one in taken] == [1, 1]


def test_a_loop_takes_each_of_its_turns_again() -> None:
    taken = taken_by(loop, ones(8, 8)).taken
    assert taken is not None
    # A product and a counter in each turn, the conditions, the counter in front.
    assert [one.nbytes for one in taken.allocations].count(256) == 5
    assert [one.nbytes for one in taken.allocations].count(1) == 6


def test_a_backward_releases_what_was_saved_for_it() -> None:
    weight = torch.ones(8, 8, requires_grad=True)

    def training(x: Any, w: Any) -> None:
        product(x, w).sin().sum().backward()

    found = memory_of(training, ones(8, 8), weight)
    assert [one.graph[:3] for one in found.programs] == ["[fw", "[bw"]
    assert found.unexplained == 0
    forward, backward = (one.taken for one in found.programs)
    assert forward is not None
    assert backward is not None
    assert [one.gaps for one in found.programs] == [(), ()]
    assert not any(one.freed for one in forward.inputs)
    assert any(one.freed for one in backward.inputs)
    assert found.programs[1].before > 0
    assert found.at_peak is found.programs[1]
    assert 0 <= backward.bound <= backward.peak
    assert found.bound == max(one.bound for one in found.programs) <= found.measured


def test_a_size_that_is_read_from_a_tensor_is_that_of_the_call() -> None:
    def sized(n: Any, x: Any) -> Any:
        return torch.zeros(n.item()) + x

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        program = taken_by(sized, torch.tensor(100), ones(1))
    assert program.taken is not None
    assert program.taken.peak == 400


def test_sizes_that_depend_on_data_are_those_of_the_call() -> None:
    x = ones(8)
    x[5:] = 0
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        program = taken_by(lambda x: x.nonzero() * 2, x)
    assert program.taken is not None
    rows, *_ = program.taken.allocations
    assert (rows.nbytes, "nonzero" in rows.text) == (5 * 8, True)
    assert program.taken.peak in (
        5 * 8,
        2 * 5 * 8,
    )  # the product is in place, or not, by the version of torch


def test_a_call_that_compiles_once_more_is_not_the_one_that_is_measured() -> None:
    found = memory_of(Counting(), ones(8))
    assert (found.measured, found.unexplained, found.outside) == (32, 0, 0)


def test_gradients_that_the_call_before_left_are_released_with_their_bytes() -> None:
    weight = ones(8, 8).requires_grad_()

    class Holder:  # what a function reaches by attributes of objects is not put back
        weights = (weight,)

    @torch.compiler.disable
    def drop() -> None:
        Holder.weights[0].grad = None

    def training(x: torch.Tensor) -> None:
        drop()
        (x @ Holder.weights[0]).sin().sum().backward()

    weight.grad = ones(8, 8)
    found = memory_of(training, ones(8, 8))
    assert found.unexplained == 0


def test_a_program_in_cpp_is_named_as_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Stand in the place of the compiled program, which takes half a minute to build."""
        return lambda handles: torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors([ones(4, 4)])

    monkeypatch.setattr(CppWrapperCodeCache, "load_pybinding", classmethod(built))
    with config.patch(cpp_wrapper=True), torch.no_grad():
        found = memory_of(product, ones(4, 4), ones(4, 4))
    assert [one.problem for one in found.programs] == [
        "C++ programs (cpp_wrapper) are not supported: only Python programs are run"
    ]
    assert found.measured > 0


def test_an_eager_call_takes_nothing_in_programs() -> None:
    found = memory_of(torch.compiler.disable(product), ones(8, 8), ones(8, 8))
    assert found.programs == ()
    assert (found.measured, found.outside, found.unexplained) == (512, 512, 0)


def test_the_trace_function_of_another_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    seen: list[str] = []

    def trace(frame: Any, event: str, argument: Any) -> None:
        seen.append(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        only(memory_of(lambda x: x + 1, ones(4)))
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)
