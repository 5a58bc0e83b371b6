"""What Inductor stores by exchanging buffers, and copies that it would take for what they are copied from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import Reason, Report, inductor_options
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.facts.target import NODE_BY_NODE
from pytest_reinplace.passes.reinplacing.run import analyze_graph, reinplace_graph
from pytest_reinplace.passes.verify import check, copied

from ..trace import arange, functional, ops

aten = torch.ops.aten
Tensor = torch.Tensor
Program = Callable[..., Any]
LIST = "aten::_foreach_add.self[0]"


def given() -> tuple[Tensor, Tensor, Tensor]:
    """Return a vector, another, and the places where it is written."""
    return arange(40), arange(40) + 3, torch.tensor([1, 7, 30])


def decided(program: Program) -> Report:
    return analyze_graph(functional(program, *given())[0].graph, Options(target=INDUCTOR))


def a_list_after_a_store(x: Tensor, w: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
    y = x.index_put((i,), w[:3])
    turned = y.flip(0)
    torch._foreach_add_([y], [w])
    return y, turned


def a_list_after_a_kernel_that_took_a_view(x: Tensor, w: Tensor, i: Tensor) -> Tensor:
    y = x * 2
    ops.scale(y[4:8], w[:4])
    torch._foreach_add_([y], [w])
    ops.scale(y, w)
    return y


def a_mask_after_a_store(x: Tensor, w: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
    y = x.index_put((i,), w[:3])
    turned = y.flip(0)
    y[w > 20] = 5
    ops.scale(y, w)
    return y, turned


def a_mask_after_a_kernel(x: Tensor, w: Tensor, i: Tensor) -> Tensor:
    y = x * 2
    ops.scale(y[4:8], w[:4])
    y[w > 20] = 5
    ops.scale(y, w)
    return y


def a_copy_with_gaps(x: Tensor, w: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
    """Inductor would take the copy for the input, and the kernel would write that."""
    part = x.view(10, 4)[:, ::2]
    y = torch.empty_strided(part.shape, part.stride())
    y.copy_(part)
    ops.scale(y, part)
    return y, x * 2


PROGRAMS: tuple[Program, ...] = (
    *(a_list_after_a_store, a_list_after_a_kernel_that_took_a_view, a_mask_after_a_store),
    *(a_mask_after_a_kernel, a_copy_with_gaps),
)


def test_a_list_of_buffers_that_inductor_made_is_computed() -> None:
    for program in (a_list_after_a_store, a_list_after_a_kernel_that_took_a_view):
        report = decided(program)
        assert LIST not in report.reinplaced and LIST not in report.clones


def test_a_list_of_inputs_is_written_in_place() -> None:
    def program(x: Tensor, w: Tensor, i: Tensor) -> None:
        x.index_put_((i,), w[:3])
        torch._foreach_add_([x], [w])

    assert LIST in decided(program).reinplaced


by_index_put = pytest.mark.skipif(torch.__version__.startswith("2.15."), reason="torch 2.15 fills by where")


@by_index_put
@pytest.mark.parametrize("program", [a_mask_after_a_store, a_mask_after_a_kernel])
def test_a_mask_on_what_was_stored_or_viewed_is_not_written(program: Program) -> None:
    masked = [o for o in decided(program).outcomes if o.op == "aten::index_put"][-1]
    assert masked.reason is Reason.LOWERING


@by_index_put
@pytest.mark.parametrize("is_view", [True, False])
def test_a_mask_on_what_is_read_through_a_view_is_not_written(is_view: bool) -> None:
    def program(x: Tensor, w: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        z = (y[4:8] if is_view else y) + 1
        y[w > 20] = 5
        ops.scale(y, w)
        return y, z

    assert ("aten::index_put.self" in decided(program).clones) is is_view


@pytest.mark.parametrize("is_masked", [True, False])
def test_a_mask_on_what_is_only_computed_is_written(is_masked: bool) -> None:
    def program(x: Tensor, w: Tensor, i: Tensor) -> Tensor:
        y = x * 2
        y[w > 20 if is_masked else i] = 5
        ops.scale(y, w)
        return y

    assert decided(program).clones == []


def a_returned_mask(x: Tensor, y: Tensor) -> Tensor:
    z = x + x.flip(0)
    x.fill_(7)
    z[y - x > 40] = 6
    return z


def a_mask_of_what_is_summed(x: Tensor, y: Tensor) -> Tensor:
    return a_returned_mask(x, y).sum(0)


def column_major() -> tuple[Tensor, Tensor]:
    return arange(8, 16).t(), arange(16, 8) + 8


def a_mask_named_by_strides(x: Tensor, y: Tensor) -> Tensor:
    return a_returned_mask(x, y).as_strided((5,), (3,), 2) + 1


@by_index_put
@pytest.mark.parametrize("program", [a_returned_mask, a_mask_named_by_strides, a_mask_of_what_is_summed])
def test_a_mask_on_what_is_asked_for_its_strides_is_not_written(program: Program) -> None:
    """The buffer that takes the place of the first one has strides of its own."""
    gm, _ = functional(program, *column_major())
    clones = analyze_graph(gm.graph, Options(target=INDUCTOR)).clones
    assert ("aten::index_put.self" in clones) is (program is not a_mask_of_what_is_summed)


@by_index_put
@pytest.mark.parametrize("program", [a_returned_mask, a_mask_named_by_strides])
@pytest.mark.parametrize("dynamic", [False, True])
def test_what_is_masked_has_the_strides_of_eager_mode(program: Program, dynamic: bool) -> None:
    expected = program(*column_major())
    with fresh_inductor_cache():
        compiled = torch.compile(program, fullgraph=True, dynamic=dynamic, options=inductor_options())
        found = compiled(*column_major())
    assert torch.equal(found, expected) and found.stride() == expected.stride()


@pytest.mark.parametrize("lowered", [True, False])
def test_a_copy_with_gaps_is_stored_where_inductor_lowers_it(lowered: bool) -> None:
    """A view of all of the buffer is copied into; run node by node, the buffer itself."""
    b = GraphBuilder()
    x = b.placeholder(arange(6, 4)[:, ::2])
    (y,) = b.v1(ops.scale.default, x=x, by=b.placeholder(arange(6, 2)))[-1:]
    b.finished([y, x])
    reinplace_graph(b.graph, Options(target=INDUCTOR if lowered else NODE_BY_NODE))
    (copy,) = b.graph.find_nodes(op="call_function", target=aten.copy_.default)
    into: Any = copy.args[0]
    assert into.target is (aten.as_strided.default if lowered else aten.empty_strided.default)
    assert into.meta["val"].stride() == x.meta["val"].stride()


def exchanged(x: Tensor, at: Tensor) -> None:
    every = torch.arange(x.shape[0])
    row = x[every, at].clone()
    x[every, at] = x[:, 0]
    x[:, 0] = row


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_copy_of_what_aten_stores_has_no_gaps(dynamic: bool) -> None:
    """The first rows of all matrices, of 24 elements: with their strides they would take 52."""
    gm, inputs = functional(exchanged, arange(3, 3, 8), torch.tensor([2, 0, 1]), dynamic=dynamic)
    specification = copied(gm)
    reinplace_graph(gm.graph, Options(target=INDUCTOR))
    (call,) = gm.graph.find_nodes(op="call_function", target=aten.index_put_.default)
    copy: Any = call.args[2]
    assert copy.target is aten.clone.default and copy.args[0].meta["val"].stride(0) == 24
    assert copy.meta["val"].is_contiguous()
    assert check(specification, gm, inputs).status == "same"


def test_compiled_programs_are_right() -> None:
    def every(x: Tensor, w: Tensor, i: Tensor) -> list[Any]:
        return [program(x, w, i) for program in PROGRAMS]

    x, w, i = given()
    expected = every(x.clone(), w.clone(), i)
    torch._dynamo.reset()
    with fresh_inductor_cache():
        actual = torch.compile(every, fullgraph=True, options=inductor_options())(x, w, i)
    torch._dynamo.reset()
    for program, one, other in zip(PROGRAMS, expected, actual, strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=0, msg=program.__name__)
    assert torch.equal(x, given()[0]) and torch.equal(w, given()[1])
