"""Hints to write the program otherwise: followed, nothing is copied and the same is computed."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.passes import Reason, reinplace

from .followed import (
    EIGHT,
    PLACE,
    SQUARE,
    aten,
    follow,
    ones,
    ran,
    scale_,
    total,
)


def test_use_the_result_before_the_input_is_written_again() -> None:
    def late(cache, new, place, value):
        result = aten.index_put.default(cache, [place], value)
        cache.copy_(new)
        return total(result)

    def early(cache, new, place, value):
        result = total(aten.index_put.default(cache, [place], value))
        cache.copy_(new)
        return result

    found = []
    for program in (late, early):
        inputs = torch.zeros(8), ones(8), PLACE, ones(1)
        gm = make_fx(program, tracing_mode="fake")(*inputs)
        found.append([o.hint for o in reinplace(gm).outcomes if not o.reinplaced])
        gm.recompile()
        torch.testing.assert_close(gm(*copy.deepcopy(inputs)), program(*copy.deepcopy(inputs)))
    assert found == [[Reason.CLOBBERED.hint], []]


def test_make_the_operand_contiguous() -> None:
    def column(x, value):
        return (x @ x)[:, 0].index_put((PLACE,), value)

    def contiguous(x, value):
        return (x @ x)[:, 0].contiguous().index_put((PLACE,), value)

    follow(column, contiguous, (*SQUARE, ones(1)), Reason.LAYOUT.hint, "exact")


def test_write_into_what_was_not_expanded() -> None:
    def table(x, rows):
        return (x * 2).expand(4, 4).index_put((PLACE,), rows) + 1

    def repeated(x, rows):
        return (x * 2).repeat(4, 1).index_put((PLACE,), rows) + 1

    follow(table, repeated, (ones(4), ones(1, 4)), Reason.SELF_OVERLAP.hint, "exact")


def sliced(cache, by, rest):
    kept, more = cache[rest.shape[0] :].clone(), cache[rest.shape[0] + 1 :].clone()
    scale_(cache[: by.shape[0]], by)
    return total(kept) + total(more)


def sliced_at_constants(cache, by, rest):
    kept, more = cache[3:].clone(), cache[4:].clone()
    scale_(cache[:2], by)
    return total(kept) + total(more)


@pytest.mark.parametrize("changed", [sliced_at_constants, None])
def test_static_sizes(changed: Any) -> None:
    inputs = ones(8), ones(2) * 3, ones(3)
    hint, dynamic = Reason.UNKNOWN_OVERLAP.hint, {"dynamic": True}
    if changed is not None:
        follow(sliced, changed, inputs, hint, "exact", dynamic, dynamic)
        return
    first = ran(sliced, inputs, "exact", dynamic=True)
    assert {o.hint for o in first.clones} == {hint, ""}
    assert {o.follows for o in first.clones} == {None, first.clones[0].named}
    torch._dynamo.reset()
    given = copy.deepcopy(inputs)
    for tensor in given:
        torch._dynamo.mark_static(tensor, 0)
    with Capture("exact", "graph") as capture:
        result = torch.compile(sliced, dynamic=True)(*given)
    assert capture.report.clones == [] and capture.report.reinplaced
    torch.testing.assert_close(result, first.result)


@pytest.fixture
def views_allowed() -> Iterator[None]:
    """Let an operator return a view, which is an error where CI is set."""
    import torch._functorch.config as config

    with config.patch(error_on_custom_op_aliasing=False):
        yield


@pytest.mark.usefixtures("views_allowed")
def test_return_memory_of_its_own() -> None:
    def step(x, by):
        first = torch.ops.hinttest.first_row(x).sum()
        scale_(x, by)
        return first

    def changed(x, by):
        first = torch.ops.hinttest.copied_row(x).sum()
        scale_(x, by)
        return first

    follow(step, changed, (*SQUARE, ones(4, 4) * 2), Reason.UNKNOWN_OP.hint, "exact")


def test_what_inductor_would_store_elsewhere_has_no_hint() -> None:
    def masked(x, mask):
        y = x @ x
        y[0] = 1
        y[mask] = x[0, 0]  # torch 2.15 fills with a number by where, which writes nothing
        return y @ x

    (clone,) = ran(masked, (*SQUARE, torch.eye(4) > 0), "exact").clones
    assert (clone.reason, clone.hint) == (Reason.LOWERING, "")


def test_view_dtypes_outside() -> None:
    def poke(x):
        x.view(torch.int32)[0, 0] = 16256
        return x * 2

    def poke_bits(bits):
        bits[0, 0] = 16256
        return bits * 2

    x = ones(4, 4)
    first = ran(poke, (x,), "exact")
    assert Reason.LOWERING.hint in [o.hint for o in first.clones]
    second = ran(poke_bits, (x.view(torch.int32),), "exact")
    assert second.clones == ()
    torch.testing.assert_close(second.inputs[0].view(torch.float32), first.inputs[0])


@contextlib.contextmanager
def gloo() -> Iterator[str]:
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield dist.group.WORLD.group_name  # type: ignore[union-attr]
    finally:
        dist.destroy_process_group()


def test_wait_before_the_write() -> None:
    def gather(x, by):
        started = torch.ops._c10d_functional.all_gather_into_tensor(x, 1, group)
        scale_(x, by)
        return torch.ops._c10d_functional.wait_tensor(started)

    def waiting(x, by):
        started = torch.ops._c10d_functional.all_gather_into_tensor(x, 1, group)
        gathered = torch.ops._c10d_functional.wait_tensor(started)
        scale_(x, by)
        return gathered

    with gloo() as group:
        torch._dynamo.reset()
        with Capture("exact", "graph") as capture:  # eager, it races: what it gathers is not compared
            torch.compile(gather)(*copy.deepcopy(EIGHT))
        write, back = (o for o in capture.report.outcomes if not o.reinplaced)
        assert (write.hint, back.follows) == (Reason.IN_FLIGHT.hint, write.named)
        second = ran(waiting, EIGHT, "exact")
    assert second.clones == ()
    torch.testing.assert_close(second.result, EIGHT[0])
