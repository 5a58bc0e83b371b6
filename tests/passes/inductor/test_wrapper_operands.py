"""Operands of wrappers that stay, and that Inductor would clone, or look for, at the wrong offset."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._inductor.config as inductor_config
from torch._inductor.utils import fresh_inductor_cache
from torch.fx import GraphModule

from pytest_reinplace.capture import triton_cpu
from pytest_reinplace.passes import Report, inductor_options
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor import stage
from pytest_reinplace.passes.inductor.mend.wrapper_operands import copy_operands
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange, functional, ops

aten = torch.ops.aten


def row(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    ops.scale(x[1], by[0])
    return x.sum(1)


def block(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    ops.scale(x[1:3, :2], by[:2, :2])
    return x.sum(1)


def wrapper_of(gm: GraphModule) -> Any:
    return next(n for n in gm.graph.nodes if "auto_functionalized" in str(n.target))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("dynamic", [False, True])
def test_what_a_wrapper_would_clone_is_copied(version: int, dynamic: bool) -> None:
    gm, inputs = functional(row, arange(4, 4), arange(4, 4), v2=version == 2, dynamic=dynamic)
    reference, _ = functional(row, arange(4, 4), arange(4, 4), v2=version == 2, dynamic=dynamic)
    assert copy_operands(gm.graph) == 1
    wrapper = wrapper_of(gm)
    copy = wrapper.kwargs["x"] if version == 1 else wrapper.kwargs["_all_bases"][0]
    assert "empty_strided" in str(copy.target) or copy.target is aten.clone.default
    assert wrapper.meta["only_clone_these_tensors"] == []
    gm.recompile()
    assert_equivalent(reference, gm, inputs)


def inside(start: int) -> torch.Tensor:
    """Return a tensor that begins inside its storage."""
    return arange(32)[start : start + 16].view(4, 4)


@pytest.mark.parametrize(("version", "start", "dynamic"), [(1, 0, True), (2, 8, True), (2, 8, False)])
def test_inductor_computes_it_right(
    version: int, start: int, dynamic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that decides nothing leaves the wrapper to Inductor."""
    monkeypatch.setattr(stage, "reinplace_graph", lambda *_: Report())
    given, expected, by = inside(start), inside(start), inside(start)
    result = row(expected, by)
    torch._dynamo.reset()
    with fresh_inductor_cache(), inductor_config.patch(enable_auto_functionalized_v2=version == 2):
        fast = torch.compile(row, fullgraph=True, dynamic=dynamic, options=inductor_options())
        torch.testing.assert_close(fast(given, by), result)
    torch.testing.assert_close(given, expected)
    torch._dynamo.reset()


def column(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    y = x * 2
    ops.scale(y[:, 1], by[0])
    return y + 1


def transposed(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    y = x * 2
    ops.scale(y.t(), by)
    return y + 1


@pytest.mark.parametrize("program", [column, transposed])
def test_a_part_of_what_is_computed_is_copied(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor computes the part alone, and would clone the bytes of the whole from there."""
    monkeypatch.setattr(stage, "reinplace_graph", lambda *_: Report())
    given, by = arange(4, 4), arange(4, 4)
    torch._dynamo.reset()
    with fresh_inductor_cache(), inductor_config.patch(enable_auto_functionalized_v2=False):
        fast = torch.compile(program, fullgraph=True, options=inductor_options())
        torch.testing.assert_close(fast(given, by), program(given, by))
    torch._dynamo.reset()
    gm, inputs = functional(program, given, by, v2=False)
    reference, _ = functional(program, given, by, v2=False)
    assert copy_operands(gm.graph) == 1
    gm.recompile()
    assert_equivalent(reference, gm, inputs)


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_views_of_a_copied_base_are_found_in_it(dynamic: bool) -> None:
    """Offsets into the storage of an input that begins inside it are counted from the copy."""
    gm, inputs = functional(block, inside(8), inside(8), dynamic=dynamic)
    reference, _ = functional(block, inside(8), inside(8), dynamic=dynamic)
    inputs = [inside(8) if isinstance(v, torch.Tensor) else v for v in inputs]
    before = wrapper_of(gm).kwargs["_x_storage_offset"]
    assert copy_operands(gm.graph) == 1
    wrapper = wrapper_of(gm)
    assert wrapper.kwargs["_all_bases"][0].meta["val"].storage_offset() == 0
    now = wrapper.kwargs["_x_storage_offset"]
    if not dynamic:
        assert (before, now) == (12, 4)
    gm.recompile()
    assert_equivalent(reference, gm, inputs)


def test_a_base_that_begins_where_no_input_says_is_left_to_inductor() -> None:
    gm, _ = functional(block, inside(8), inside(8), dynamic=True)
    for node in gm.graph.find_nodes(op="placeholder"):
        if isinstance(node.meta["val"], torch.SymInt):
            node.meta["val"] = 8
    assert copy_operands(gm.graph) == 0
    assert "only_clone_these_tensors" not in wrapper_of(gm).meta


def test_so_is_what_a_triton_kernel_writes() -> None:
    pytest.importorskip("triton")
    from ...reports.kernels import add_to

    def program(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        add_to(x[1], by[0])
        return x.sum(1)

    with triton_cpu.capturing(), triton_cpu.executing():
        gm, inputs = functional(program, arange(4, 4), arange(4, 4), dynamic=True)
        reference, _ = functional(program, arange(4, 4), arange(4, 4), dynamic=True)
        assert copy_operands(gm.graph) == 1
        assert not any("triton_kernel_wrapper_functional" in str(n.target) for n in gm.graph.nodes)
        gm.recompile()
        assert_equivalent(reference, gm, inputs)


@pytest.mark.parametrize("decides", [True, False])
@pytest.mark.parametrize("start", [0, 8])
def test_inductor_computes_right_what_a_kernel_writes_in_a_view_of_another_dtype(
    decides: bool, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch 2.15 clones the base of a view with gaps as a whole, with symbolic sizes at a wrong offset."""
    pytest.importorskip("triton")
    from ...reports.kernels import add_to_column

    def program(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        bits = x.view(torch.int32)
        add_to_column(bits[1:3, 1], by)
        return bits + 1

    if not decides:
        monkeypatch.setattr(stage, "reinplace_graph", lambda *_: Report())
    given, expected, by = inside(start), inside(start), torch.arange(2, dtype=torch.int32)
    bits = expected.view(torch.int32)
    bits[1:3, 1] = bits[1:3, 1] * 2 + by
    torch._dynamo.reset()
    with fresh_inductor_cache(), triton_cpu.working():
        fast = torch.compile(program, fullgraph=True, dynamic=True, options=inductor_options())
        assert torch.equal(fast(given, by), bits + 1)
    assert torch.equal(given.view(torch.int32), bits)
    torch._dynamo.reset()


def test_what_is_found_by_an_offset_stays_where_it_is() -> None:
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(12, dtype=torch.int32))
    part = builder.call(aten.view.dtype, builder.call(aten.slice.Tensor, x, 0, 4, 8), torch.int16)
    new = builder.v1(adversary.operator("bump"), x=part)[-1]
    seen = builder.call(aten.as_strided.default, new, [2], [1], 10)
    gm = builder.finished([builder.call(aten.neg.default, seen)])
    assert copy_operands(gm.graph) == 0
    seen.args = (new, [2], [1])
    assert copy_operands(gm.graph) == 1
