"""Values of which a kernel writes a part: in memory as a whole before, and nothing is stored twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache
from torch.fx import Node

from pytest_reinplace.capture import triton_cpu
from pytest_reinplace.passes import ReinplacePass, inductor_options
from pytest_reinplace.passes.inductor.defects import undefended
from pytest_reinplace.passes.oracle.call import called, differences, peak

from ..trace import arange, functional, ops
from .test_stored_early import Program

aten = torch.ops.aten
Tensor = torch.Tensor


def part(p: Program, of: Node, count: int = 2) -> Node:
    return p.call(aten.slice.Tensor, of, 0, 0, count)


def test_a_value_of_which_a_part_is_written_is_stored() -> None:
    p = Program()
    whole = p.call(aten.mul.Tensor, p.y, 2)
    p.write(part(p, whole))
    assert p.stored(p.call(aten.neg.default, whole)) == [whole.name]


def test_so_is_one_that_is_written_through_another_shape() -> None:
    p = Program()
    whole = p.call(aten.mul.Tensor, p.y, 2)
    p.write(p.call(aten.permute.default, whole, [1, 0]))
    assert p.stored(p.call(aten.neg.default, whole)) == [whole.name]


def test_what_is_written_as_a_whole_is_not() -> None:
    p = Program()
    whole = p.call(aten.mul.Tensor, p.y, 2)
    p.write(whole)
    assert p.stored(p.call(aten.neg.default, part(p, whole))) == []


def test_an_input_is_not() -> None:
    p = Program()
    p.write(part(p, p.x))
    assert p.stored(p.call(aten.neg.default, p.x)) == []


def test_what_inductor_itself_writes_in_part_is_not() -> None:
    p = Program()
    whole = p.call(aten.mul.Tensor, p.y, 2)
    p.call(aten.copy_.default, part(p, whole), part(p, p.x))
    assert p.stored(p.call(aten.neg.default, whole)) == []


def test_a_part_that_is_only_read_is_not() -> None:
    p = Program()
    whole = p.call(aten.mul.Tensor, p.y, 2)
    p.builder.graph.call_function(ops.scale.default, (p.x, part(p, whole, 4)))
    assert p.stored(p.call(aten.neg.default, whole)) == []


def test_parts_that_a_list_writes_are_not() -> None:
    """Inductor computes lists itself, and stores their elements where they lie."""
    p = Program()
    whole = p.call(aten.mul.Tensor, p.y, 2)
    p.builder.graph.call_function(aten._foreach_add_.List, ([part(p, whole)], [part(p, p.x)]))
    assert p.stored(p.call(aten.neg.default, whole)) == []


def test_what_is_concatenated_is_not() -> None:
    """Inductor computes it right where it lies in the concatenation; a part apart is less than a whole."""
    p = Program()
    whole = p.call(aten.mul.Tensor, p.y, 2)
    p.write(part(p, whole))
    assert p.stored(p.call(aten.cat.default, [whole, p.x])) == []


def rows(x: Tensor) -> list[Tensor]:
    y = x.relu()
    ops.scale(y[1:], x[:-1])
    return [y[:, :1] * 3]


def one_after_the_other(x: Tensor) -> list[Tensor]:
    y = torch.full_like(x, 3)
    high, low = y.chunk(2)
    ops.scale(high, x[:32])
    ops.scale(low, x[32:])
    return [y.sum(0)]


def turned(x: Tensor) -> list[Tensor]:
    y = x.relu()
    ops.scale(y.t(), x)
    return [y[:, :1] * 3]


def held(program: Callable[..., list[Tensor]], x: Tensor) -> int:
    torch.compiler.reset()
    compiled = torch.compile(program, fullgraph=True, options=inductor_options())
    assert list(differences(called(program, [x.clone()]), called(compiled, [x.clone()]))) == []
    return peak(compiled, [x.clone()])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("program", "is_v2"),
    [(rows, True), (one_after_the_other, True), (rows, False), (one_after_the_other, False), (turned, False)],
)
def test_nothing_is_held_beside_the_whole(program: Callable[..., list[Tensor]], is_v2: bool) -> None:
    x = arange(64, 64) - 1000
    with torch._inductor.config.patch(enable_auto_functionalized_v2=is_v2):
        with fresh_inductor_cache():
            kept = held(program, x)
        with fresh_inductor_cache(), undefended("written-twice"):
            twice = held(program, x)  # the twin
    assert kept < 1.1 * x.nbytes and twice > kept + x.nbytes // 4


def launched(x: Tensor) -> list[Tensor]:
    from ...plugin import kernels

    y = x.relu()
    kernels.add_[(16,)](y[:, 16:], x, 16 * 16, BLOCK=16)  # the elements that lie there one behind the other
    return [y * 3]


@pytest.mark.usefixtures("quick")
def test_a_triton_kernel_is_given_the_part_where_it_lies() -> None:
    pytest.importorskip("triton")
    x = arange(32, 32) - 500
    with triton_cpu.working():
        expected = launched(x)
        for defence, is_right in (((), True), (("written-twice",), False)):
            torch.compiler.reset()
            with fresh_inductor_cache(), undefended(*defence):
                compiled = torch.compile(launched, fullgraph=True, options=inductor_options())
                assert torch.equal(compiled(x)[0], expected[0]) is is_right


def only_read(x: Tensor) -> Tensor:
    from ...plugin import kernels

    y, z = x.relu(), x + 1
    kernels.add_[(4,)](z, y[1:], 8 * 8, BLOCK=16)
    return y + z


def test_a_part_that_a_triton_kernel_only_reads_is_not() -> None:
    pytest.importorskip("triton")
    with triton_cpu.working():
        gm, _ = functional(only_read, arange(9, 8))
    ReinplacePass().apply(gm.graph)
    assert not gm.graph.find_nodes(op="call_function", target=aten.copy_.default)
