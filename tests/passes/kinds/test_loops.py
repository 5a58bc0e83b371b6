"""Loops: what is in place in their bodies, and around them; what they carry belongs to the caller."""

from __future__ import annotations

import torch
from torch._higher_order_ops.scan import scan

from ..nested import Tensor, loop, put, rewritten, row, shared, text, write_or_keep
from ..trace import arange


def test_a_carry_is_copied_at_every_iteration_before_it_is_written() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        (state,) = loop(times, lambda i, s: (put(i, s, v),), x * 1)
        return state + 1

    report, gm = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1])
    assert report.clones == ["aten::clone.self"] and report.reinplaced == ["aten::index_put.self"]
    assert all(o.source is not None and "tests/passes" in o.source for o in report.outcomes)
    assert "index_put_.default" in text(gm) and text(gm).count("aten.clone.default") == 1


def test_swapped_carries_keep_their_copy() -> None:
    def fn(times: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return loop(times, lambda i, s, t: (t.clone(), s.clone()), a * 1, b * 1)

    report, _ = rewritten(fn, torch.tensor(3), arange(4, 3), arange(4, 3) + 100, also=[0, 1, 2])
    assert report.clones == ["aten::clone.self", "aten::clone.self"]


def test_a_carry_that_is_read_after_its_update_in_the_body_is_copied_at_every_iteration() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        def body(i: Tensor, s: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
            new = put(i, s, v)
            return new, total + (new - s)

        return loop(times, body, x * 1, x * 0)

    report, gm = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3) + 50, also=[0, 1])
    assert report.clones == ["aten::clone.self"]
    assert text(gm).count("aten.clone.default") == 1


def test_a_captured_tensor_is_never_written_in_a_loop() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        captured = x * 2

        def body(i: Tensor, total: Tensor) -> tuple[Tensor]:
            return (total + put(i, captured, v + i),)

        return loop(times, body, x + 1)

    report, _ = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1])
    assert report.clones == ["aten::clone.self"]  # inside, once in each iteration


def test_a_carry_is_not_written_when_the_loop_captures_its_initial_value() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        start, captured = x * 1, x * 1

        def body(i: Tensor, s: Tensor) -> tuple[Tensor]:
            return (put(i, s, v + captured[1]),)

        (state,) = loop(times + 1, body, start)
        return state

    report, _ = shared(fn, torch.tensor(3), arange(4, 3), arange(3))
    assert report.clones == ["aten::clone.self"]


def test_two_carries_that_begin_as_one_tensor_are_copied_apart() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        return loop(times, lambda i, s, t: (put(i, s, v), put(i + 1, t, v)), x * 1, x * 1)

    report, _ = shared(fn, torch.tensor(3), arange(4, 3), arange(3))
    assert report.clones == ["aten::clone.self", "aten::clone.self"]


def test_the_result_of_a_loop_is_written_in_place_and_put_back_into_the_buffer() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        (state,) = loop(times, lambda i, s: (put(i, s, v),), x[:2])
        state[0] = v * 2
        x[:2] = state
        return v.sum()

    rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1])


def steps(x: Tensor, xs: Tensor) -> tuple[Tensor, Tensor]:
    def step(state: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        new = row(state, value)
        return new, new.sum(0)

    final, sums = scan(step, x, xs, dim=0)
    return final, sums


def test_a_scan_that_hands_out_its_carry_keeps_each_of_its_values() -> None:
    def fn(x: Tensor, xs: Tensor) -> tuple[Tensor, Tensor]:
        def step(state: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
            new = row(state, value)
            return new, new.clone()

        final, seen = scan(step, x * 1, xs, dim=0)
        return final, seen

    rewritten(fn, arange(4, 3), arange(5, 3))


def test_a_branch_inside_a_loop() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        def body(i: Tensor, s: Tensor) -> tuple[Tensor]:
            return (write_or_keep(i % 2 == 0, put(i, s, v * 2), v),)

        (state,) = loop(times, body, x * 1)
        return state + 1

    report, _ = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1, 2])
    assert "aten::index_put.self" in report.reinplaced


def test_a_branch_inside_a_loop_that_reads_the_old_carry() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        def body(i: Tensor, s: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
            return write_or_keep(i % 2 == 0, s, v), t + s

        return loop(times, body, x * 1, x * 0)

    rewritten(fn, torch.tensor(3), arange(4, 3), arange(3) + 7, also=[0, 1, 2])


def test_symbolic_sizes() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        (state,) = loop(times, lambda i, s: (put(i, s, v),), x * 1)
        return state + 1

    rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1], dynamic=True)


def test_a_loop_that_may_not_run_reads_what_it_begins_with() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        old = x * 1
        new = row(old, v)
        (state,) = loop(times, lambda i, s: (new + i,), old)
        return state + new

    for times in (0, 2):
        report, _ = rewritten(fn, torch.tensor(times), arange(4, 3), arange(3) + 50, also=[0, 1])
        assert report.clone_bytes > 0
