"""The lower bound of a program."""

from __future__ import annotations

import pytest
import torch

from pytest_reinplace.lowered.memory import Memory

from .measured import memory_of
from .programs import ones
from .test_program import EIGHT, run, tensor

SIXTEEN = "empty_strided_cpu((16, ), (1, ), torch.float32)"


def test_a_kernel_needs_what_it_is_given_at_the_same_time() -> None:
    found = run(
        f"buf0 = {EIGHT}",
        f"buf1 = {EIGHT}",
        "kernel(buf0, buf1)",
        f"buf2 = {EIGHT}",
        f"buf3 = {EIGHT}",
        "kernel.run(buf1, buf3, 8, stream=[buf2])",
        "del buf0, buf1, buf2",
        "return (buf3, )",
    )
    assert (found.peak, found.bound) == (128, 96)
    assert (found.need.position, found.need.text) == (5, "kernel.run(buf1, buf3, 8, stream=[buf2])")


def test_a_call_into_a_library_needs_its_result_too() -> None:
    given = run(
        f"buf0 = {EIGHT}",
        f"buf1 = {EIGHT}",
        "extern_kernels.relu(buf0, out=buf1)",
        "del buf0",
        "return (buf1, )",
    )
    assert (given.bound, given.need.position) == (64, 2)
    made = run(
        f"buf0 = {EIGHT}", "buf1 = torch.ops.aten.sort.default(buf0)", "del buf0", "return (buf1[0], )"
    )
    assert (made.bound, made.need.position) == (32 + 32 + 64, 1)


def test_views_count_by_their_storage_and_once() -> None:
    found = run(
        f"buf0 = {SIXTEEN}",
        "kernel(reinterpret_tensor(buf0, (4, ), (1, ), 0), reinterpret_tensor(buf0, (4, ), (1, ), 4))",
        "return (reinterpret_tensor(buf0, (2, ), (1, ), 0), )",
    )
    assert found.bound == found.peak == 64


def test_room_that_no_call_needs_does_not_count() -> None:
    found = run(f"buf0 = {SIXTEEN}", f"buf1 = {EIGHT}", "kernel(buf1)", "del buf0", "return (buf1, )")
    assert (found.peak, found.bound) == (96, 32)


def test_results_are_held_at_the_end() -> None:
    found = run(
        f"buf0 = {EIGHT}", "kernel(buf0)", f"buf1 = {EIGHT}", "kernel(buf1)", "return (buf0, (buf1, buf0))"
    )
    assert (found.bound, found.need.text) == (64, "return (buf0, (buf1, buf0))")


def test_results_are_named_where_a_block_is_left_after_them() -> None:
    text = f"buf0 = {EIGHT}", f"buf1 = {EIGHT}", "with torch.no_grad():", "    return (buf0, buf1)"
    assert run(*text).need.text == "return (buf0, buf1)"


def test_what_the_caller_holds_does_not_count() -> None:
    body = (
        "arg0_1, = args",
        "args.clear()",
        f"buf0 = {EIGHT}",
        "kernel(arg0_1, buf0)",
        "return (buf0, arg0_1)",
    )
    assert run(*body, inputs=(tensor(1),)).bound == 32
    assert run("return ()").need.to_dict() == {"bytes": 0, "position": 0, "line": 0, "text": ""}


_BACKWARD = (
    "arg0_1, arg1_1 = args",
    "args.clear()",
    f"buf0 = {SIXTEEN}",
    "kernel(arg0_1, buf0)",
    "del arg0_1",
    f"buf1 = {EIGHT}",
    "kernel(buf0, arg1_1, buf1)",
    "del arg1_1",
    "del buf0",
    "return (buf1, )",
)


def test_inputs_that_are_released_may_be_so_before_a_call_that_does_not_need_them() -> None:
    inputs = tensor(1), tensor(2)
    assert run(*_BACKWARD, inputs=inputs).bound == 64 + 32
    found = run(*_BACKWARD, inputs=inputs, released=frozenset({1, 2}))
    assert (found.peak, found.bound) == (64, 64)  # the second kernel, as if arg0_1 were gone
    assert found.need.text == "kernel(buf0, arg1_1, buf1)"


def test_a_program_that_only_releases_needs_nothing() -> None:
    body = (
        "arg0_1, = args",
        "args.clear()",
        "del arg0_1",
        f"buf0 = {EIGHT}",
        "kernel(buf0)",
        "return (buf0, )",
    )
    found = run(*body, inputs=(tensor(1, storage=64),), released=frozenset({1}))
    assert (found.peak, found.bound) == (0, 0)


def test_values_in_a_pool_count_as_far_as_they_reach() -> None:
    part = "alloc_from_pool(pool, {}, torch.float32, ({}, ), (1, ))"
    found = run(
        "pool = empty_strided_cpu((96, ), (1, ), torch.uint8)",
        f"buf0 = {part.format(0, 4)}",
        f"buf1 = {part.format(16, 8)}",
        "kernel(buf0, reinterpret_tensor(buf1, (4, ), (1, ), 0))",
        "del buf0, pool",
        "return (buf1, )",
    )
    assert (found.peak, found.bound) == (96, 32)
    (pool,) = found.allocations
    assert (pool.freed, pool.later) == (None, ("buf0", "buf1"))


def test_a_pool_of_other_numbers_is_shared_out_too() -> None:
    found = run(
        f"pool = {EIGHT}",
        "buf0 = alloc_from_pool(pool, 16, torch.int64, (2, ), (1, ))",
        "kernel(buf0)",
        "del buf0",
        "return (pool, )",
    )
    assert (found.bound, found.need.text) == (32, "return (pool, )")


@pytest.mark.usefixtures("unoptimized")
def test_planned_memory_is_followed() -> None:
    with torch.no_grad(), torch._inductor.config.patch(memory_planning=True):
        found = memory_of(lambda a, b: ((a @ b).relu() @ b).sin() @ b, ones(8, 8), ones(8, 8))
    taken = found.programs[0].taken
    assert taken is not None
    assert any("alloc_from_pool" in level.text for level in taken.levels)
    assert (found.unexplained, found.measured, found.bound) == (0, 512, 512)


def test_a_call_is_bound_by_the_program_that_needs_most() -> None:
    eager = Memory(64, (), 64)
    assert (eager.bound, eager.over_bound) == (0, None)
    assert eager.to_dict()["over_bound"] is None
