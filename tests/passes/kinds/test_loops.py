"""Loops: which carries are updated in place in their bodies, and which must not be."""

from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops.scan import scan

from pytest_reinplace.passes import Reason, _torch

from ..nested import Tensor, loop, put, rewritten, row, shared, text, write_or_keep
from ..trace import arange


def test_a_carry_is_updated_in_place_at_every_iteration() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        (state,) = loop(times, lambda i, s: (put(i, s, v),), x * 1)
        return state + 1

    report, gm = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1])
    assert report.clones == []
    assert "while_loop.carried_inputs[1]" in report.reinplaced
    assert all(o.source is not None and "tests/passes" in o.source for o in report.outcomes)
    assert "index_put_.default" in text(gm) and "clone" not in text(gm)


def test_an_initial_value_that_is_read_after_the_loop_is_copied_once_before_it() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        start = x * 1
        (state,) = loop(times, lambda i, s: (put(i, s, v),), start)
        return state + start

    report, gm = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1])
    assert report.clones == ["while_loop.carried_inputs[1]"]
    assert report.clone_bytes == 48
    assert str(gm.graph).count("clone") == text(gm).count("clone")  # none is left inside


def test_an_initial_value_that_the_caller_keeps_is_copied_once() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        (state,) = loop(times, lambda i, s: (put(i, s, v),), x)
        return state + 1

    report, _ = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1])
    assert report.clones == ["while_loop.carried_inputs[1]"]
    assert [o.reason for o in report.outcomes if not o.reinplaced] == [Reason.INPUT_KEPT]


def test_an_input_that_gets_the_result_of_the_loop_is_updated_in_place() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        (state,) = loop(times, lambda i, s: (put(i, s, v),), x)
        x.copy_(state)
        return state.sum()

    report, _ = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1])
    assert report.clones == []


def test_swapped_carries_keep_their_copy() -> None:
    def fn(times: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return loop(times, lambda i, s, t: (t.clone(), s.clone()), a * 1, b * 1)

    report, _ = rewritten(fn, torch.tensor(3), arange(4, 3), arange(4, 3) + 100, also=[0, 1, 2])
    assert report.clones == ["aten::clone.self", "aten::clone.self"]


def test_swapped_carries_that_are_written_keep_their_copies() -> None:
    def fn(times: Tensor, a: Tensor, b: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        return loop(times, lambda i, s, t: (put(i, t, v), put(i, s, v + 1)), a * 1, b * 1)

    report, _ = rewritten(fn, torch.tensor(3), arange(4, 3), arange(4, 3) + 100, arange(3), also=[0, 1, 2])
    assert not any(label.startswith("while_loop") for label in report.reinplaced)


def test_a_carry_that_is_read_after_its_update_in_the_body_is_copied_at_every_iteration() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        def body(i: Tensor, s: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
            new = put(i, s, v)
            return new, total + (new - s)

        return loop(times, body, x * 1, x * 0)

    report, gm = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3) + 50, also=[0, 1])
    assert report.clones == ["aten::sub.other"]  # the old value, for the line that reads it
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
    assert report.clones == ["while_loop.carried_inputs[1]"]
    assert [o.reason for o in report.outcomes if not o.reinplaced] == [Reason.SAME_NODE]


def test_a_carry_that_only_goes_round_costs_nothing() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        state, _ = loop(times, lambda i, s, w: (put(i, s, w[0]), w.clone()), x * 1, v)
        return state + v.sum()  # the caller keeps v, but nobody writes it

    report, _ = rewritten(fn, torch.tensor(3), arange(4, 3), arange(2, 3), also=[0, 1])
    assert report.clones == []


def test_two_carries_that_begin_as_one_tensor_are_copied_apart() -> None:
    """One of them may stay: the copy of the other is made before the loop."""

    def fn(times: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        return loop(times, lambda i, s, t: (put(i, s, v), put(i + 1, t, v)), x * 1, x * 1)

    report, _ = shared(fn, torch.tensor(3), arange(4, 3), arange(3))
    assert report.clones == ["while_loop.carried_inputs[2]"]


def test_rows_of_a_buffer_that_the_loop_does_not_touch_may_be_read_later() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        buffer = x * 1
        (state,) = loop(times, lambda i, s: (put(i, s, v),), buffer[:2])
        return state.sum() + buffer[2:]

    report, _ = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1])
    assert report.clones == []


def test_rows_of_a_buffer_that_the_loop_writes_may_not_be_read_later() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        buffer = x * 1
        (state,) = loop(times, lambda i, s: (put(i, s, v),), buffer[:2])
        return state.sum() + buffer[1:]

    report, _ = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1])
    assert report.clones == ["while_loop.carried_inputs[1]"]


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


def test_the_carry_of_a_scan() -> None:
    def fn(x: Tensor, xs: Tensor) -> tuple[Tensor, Tensor]:
        return steps(x * 1, xs)

    report, _ = rewritten(fn, arange(4, 3), arange(5, 3))
    if _torch.scan_runs_each_step_once():
        assert report.clones == [] and "scan.init[0]" in report.reinplaced
    else:
        assert not any(label.startswith("scan") for label in report.reinplaced)


def test_the_carry_of_a_scan_stays_functional_where_torch_runs_a_step_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_torch, "scan_runs_each_step_once", lambda: False)
    report, _ = rewritten(lambda x, xs: steps(x * 1, xs), arange(4, 3), arange(5, 3))
    assert not any(label.startswith("scan") for label in report.reinplaced)


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

    report, gm = rewritten(fn, torch.tensor(3), arange(4, 3), arange(3), also=[0, 1, 2])
    assert report.clones == []
    assert {"cond.operands[0]", "while_loop.carried_inputs[1]"} <= set(report.reinplaced)
    assert "aten.clone" not in text(gm)


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
