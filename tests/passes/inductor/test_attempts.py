"""Graphs that are lowered by both policies: the schedule that holds less is kept, of two the quicker one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache
from torch.profiler import ProfilerActivity, profile

from pytest_reinplace.passes import Report, inductor_options, observe
from pytest_reinplace.passes.inductor.schedule import attempts, check
from pytest_reinplace.passes.inductor.schedule._torch import AFTER_FUSION
from pytest_reinplace.passes.inductor.schedule.cost import Cost

from ..trace import arange

Tensor = torch.Tensor


def added_tiles(out: Tensor, tiles: Tensor) -> Tensor:
    """Stores into two buffers, which one kernel computes."""
    seen = torch.zeros(24, 24)
    for i in (0, 8):
        out[i : i + 16, 4:20] += tiles[i // 8]
        seen[i : i + 16, 4:20] += 1
    return out / seen.clamp(min=1)


def summed_in_steps(x: Tensor, tiles: Tensor) -> Tensor:
    """A prefix sum: what is added is computed from what it is added to, and both must be held."""
    row, step = x.view(-1)[:64], 1
    while step < 16:
        following = row.clone()
        following[step:] += row[:-step]
        row, step = following, step * 2
    return row


def scaled_channels(x: Tensor, tiles: Tensor) -> None:
    """An input that Inductor itself would hold twice."""
    x[:, 0].mul_(2)
    x[:, 1].sub_(1).clamp_(0, 20)
    x[2:4, 2:4] = 0


def taken_over(x: Tensor, tiles: Tensor) -> Tensor:
    """A list that is copied into an input from which something was computed, as Rprop does it."""
    given = tiles.view(-1)[:576].view(24, 24)
    (product,) = torch._foreach_mul([given], [x])
    torch._foreach_copy_([x], [given])
    x.copy_(torch.where(product < 0, 0, x))
    return product.sign()


def scaled_in_a_list(x: Tensor, tiles: Tensor) -> None:
    """A list of what an input holds in the end: there is nothing to choose."""
    torch._foreach_mul_([x], [tiles.view(-1)[:576].view(24, 24)])


def multiplied_in_between(x: Tensor, tiles: Tensor) -> Tensor:
    """An element that has to be in memory, though its input is written once more."""
    torch._foreach_mul_([x], [tiles.view(-1)[:576].view(24, 24)])
    product = x @ x
    x.add_(1)
    return product


def in_columns(x: Tensor, tiles: Tensor) -> Tensor:
    """Columns of a factor, each computed from those before: less is held, but each element moves a sector."""
    a = x @ x.t() + 24 * torch.eye(24)
    lower = torch.zeros_like(a)
    for j in range(3):
        lower[j:, j] = a[j:, j] - lower[j:, :j] @ lower[j, :j]
        lower[j:, j] = lower[j:, j] / lower[j, j]
    return lower


def in_rows(x: Tensor, tiles: Tensor) -> Tensor:
    """The same in rows, whose elements lie side by side."""
    a = x @ x.t() + 24 * torch.eye(24)
    upper = torch.zeros_like(a)
    for j in range(3):
        upper[j, j:] = a[j, j:] - upper[:j, j] @ upper[:j, j:]
        upper[j, j:] = upper[j, j:] / upper[j, j]
    return upper


def stored_into_an_input(x: Tensor, tiles: Tensor) -> Tensor:
    """Nothing to choose: whoever writes in place at all does it here."""
    x[1] = x[0] + 1
    return tiles * 2


def without_a_border(x: Tensor, tiles: Tensor) -> Tensor:
    """Stores into a copy, which need not be in memory: both sums compute it on the way."""
    inner = x.clone()
    inner[:, :2] = 0
    return torch.stack((inner.sum(0), inner.sum(1)))


PROGRAMS = {
    # How often it is lowered, and whether what it stores is computed at last.
    added_tiles: (2, True),
    summed_in_steps: (2, True),
    scaled_channels: (3, False),
    in_columns: (2, True),
    in_rows: (3, False),
    stored_into_an_input: (1, False),
    without_a_border: (2, True),
    taken_over: (2, True),
    scaled_in_a_list: (1, False),
    multiplied_in_between: (1, False),
}


STORES = "aten::slice_scatter", "aten::select_scatter", "aten::_foreach_copy"


class Made:
    """What became of a program."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.costs: list[Cost] = []
        self.reports: list[Report] = []
        self.lowered = 0
        cost_of, problem = check.cost_of, check.problem

        def noting(nodes: list[Any]) -> Cost:
            self.costs.append(cost_of(nodes))
            return self.costs[-1]

        def counting(nodes: list[Any]) -> str:
            self.lowered += 1
            return problem(nodes)

        monkeypatch.setattr(check, "cost_of", noting)
        monkeypatch.setattr(check, "problem", counting)

    def of(self, program: Callable[..., Any], **options: Any) -> int:
        """Compile a program, compare it with eager mode, and return the most bytes that it holds."""
        expected, given = ([arange(24, 24).float(), arange(4, 16, 16).float()] for _ in range(2))
        result = program(*expected)
        torch.compiler.reset()
        with fresh_inductor_cache(), observe(lambda report, _: self.reports.append(report)):
            function = torch.compile(program, fullgraph=True, options=inductor_options(**options))
            actual = function(*given)
            for one, other in zip((result, *expected), (actual, *given), strict=True):
                torch.testing.assert_close(one, other)
            return peak(lambda: function(*given))


def peak(function: Callable[[], Any]) -> int:
    """Return the most bytes that a call holds beside what it is given."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = function()
    live = most = 0
    for event in profiler.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            live += event.nbytes()
            most = max(most, live)
    del result
    return most


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_cheaper_schedule_is_kept(program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)
    held = made.of(program)
    (report,) = made.reports  # only of the graph that is kept
    times, is_computed = PROGRAMS[program]
    assert made.lowered == times
    stored = [o for o in report.outcomes if o.op in STORES]
    assert any(o.fused for o in stored) is is_computed and report.clones == []
    if made.costs:
        kept = made.costs[1 if is_computed else 0]
        ours, inductors = made.costs[:2]
        assert kept.peak == held <= inductors.peak
        assert inductors.is_above(ours) is not is_computed


def test_costs_that_cannot_be_told_choose_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(nodes: list[Any]) -> Cost:
        raise RuntimeError("no sizes")

    made = Made(monkeypatch)
    monkeypatch.setattr(check, "cost_of", fails)
    made.of(added_tiles)
    assert made.lowered == 1 and "no sizes" in caplog.text


@pytest.mark.parametrize(("fails_at", "times"), [(2, 3), (1, 1)])
def test_the_second_cost_is_needed_to_go_another_way(
    fails_at: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, calls = Made(monkeypatch), iter(range(1, 9))
    cost_of = check.cost_of

    def fails_once(nodes: list[Any]) -> Cost:
        if next(calls) == fails_at:
            raise RuntimeError("no sizes")
        return cost_of(nodes)

    monkeypatch.setattr(check, "cost_of", fails_once)
    made.of(added_tiles)
    assert made.lowered == times


def test_of_two_that_cost_the_same_the_one_at_hand_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)
    monkeypatch.setattr(check, "cost_of", lambda nodes: Cost(peak=1, moved=1))
    made.of(scaled_channels)
    assert made.lowered == 2


def test_what_holds_more_is_never_chosen_and_what_saves_little_by_many_calls_neither() -> None:
    assert Cost(peak=8, moved=1).is_above(Cost(peak=4, moved=4))
    assert not Cost(peak=8, moved=1).is_above(Cost(peak=4, moved=6))
    assert Cost(peak=8, moved=2).is_above(Cost(peak=8, moved=1))
    assert not Cost(peak=4, moved=99).is_above(Cost(peak=8, moved=1))
    assert not Cost(peak=8, moved=1).is_above(Cost(peak=8, moved=1))


def test_by_the_peak_what_is_moved_decides_between_equals_alone() -> None:
    assert Cost(peak=8, moved=1).is_above(Cost(peak=7, moved=99), by_peak=True)
    assert not Cost(peak=7, moved=99).is_above(Cost(peak=8, moved=1), by_peak=True)
    assert Cost(peak=8, moved=2).is_above(Cost(peak=8, moved=1), by_peak=True)
    assert not Cost(peak=8, moved=1).is_above(Cost(peak=8, moved=1), by_peak=True)


def test_the_schedule_that_holds_less_is_kept_where_the_peak_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, other = Made(monkeypatch), Made(monkeypatch)
    assert made.of(in_columns, policy="peak") < other.of(in_columns)
    (report,), (usual,) = made.reports, other.reports
    assert not any(o.fused for o in report.outcomes) and any(o.fused for o in usual.outcomes)


def smoothed(x: Tensor, tiles: Tensor) -> Tensor:
    out = x.clone()
    out[1:-1] = x[2:] + x[1:-1] + x[:-2]
    return torch.stack((out.sum(0), out.sum(1)))


def test_a_buffer_that_is_read_at_several_places_is_moved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)
    made.of(smoothed)
    matrix = 24 * 24 * 4
    assert (1 << 16) < made.costs[1].moved < (1 << 16) + 3 * matrix  # each of two sums reads x once


def test_a_policy_that_is_asked_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)
    x = arange(24, 24).float()
    torch.compiler.reset()
    with fresh_inductor_cache():
        options = inductor_options(policy="speed")
        torch.compile(scaled_channels, fullgraph=True, options=options)(x, x)
    assert made.lowered == 1 and made.costs == []


def looped(x: Tensor, tiles: Tensor) -> Tensor:
    """A graph with a subgraph, which has a schedule of its own."""
    added = added_tiles(x, tiles)
    return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (added,))


def test_graphs_with_subgraphs_are_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)
    made.of(looped)
    assert made.costs == []


@pytest.mark.usefixtures("quick")
def test_who_asks_for_every_lowering_sees_each_at_once() -> None:
    """And who does not sees the one that is kept."""
    every: list[Report] = []
    kept: list[Report] = []
    torch.compiler.reset()
    with (
        fresh_inductor_cache(),
        observe(lambda report, _: every.append(report), every=True),
        observe(lambda report, _: kept.append(report)),
    ):
        torch.compile(scaled_channels, options=inductor_options())(arange(24, 24), arange(4, 16, 16))
    first, other, last = every
    assert kept == [last] and first == last != other


@pytest.mark.usefixtures("quick")
def test_what_inductor_fails_at_is_compiled_without_writes_in_place(caplog: pytest.LogCaptureFixture) -> None:
    def stop(nodes: list[Any]) -> list[Any]:
        if not attempts.why_functional():
            raise ZeroDivisionError("in place")
        return nodes

    kept: list[Report] = []
    options = inductor_options()
    options[AFTER_FUSION] = type(options[AFTER_FUSION])(stop)
    expected, given = ([arange(24, 24), arange(4, 16, 16)] for _ in range(2))
    result = stored_into_an_input(*expected)
    torch.compiler.reset()
    with fresh_inductor_cache(), observe(lambda report, _: kept.append(report)):
        actual = torch.compile(stored_into_an_input, fullgraph=True, options=options)(*given)
    assert torch.equal(result, actual) and all(map(torch.equal, expected, given))
    assert kept == [Report()]
    assert "without writes in place, Inductor failed" in caplog.text and "in place" in caplog.text


@pytest.mark.usefixtures("quick")
def test_what_fails_without_writes_is_not_tried_again() -> None:
    calls: list[Any] = []

    def stop(nodes: list[Any]) -> Any:
        calls.append(nodes)
        raise ZeroDivisionError

    options = inductor_options()
    options[AFTER_FUSION] = type(options[AFTER_FUSION])(stop)
    torch.compiler.reset()
    with fresh_inductor_cache(), pytest.raises(Exception):  # noqa: B017, PT011
        torch.compile(without_a_border, options=options)(arange(24, 24), arange(4, 16, 16))
    assert len(calls) == 1


@pytest.mark.usefixtures("quick")
def test_what_fails_later_was_decided_all_the_same() -> None:
    def stop(_: Any) -> None:
        raise ZeroDivisionError

    kept: list[Report] = []
    options = inductor_options()
    options[AFTER_FUSION] = type(options[AFTER_FUSION])(stop)
    torch.compiler.reset()
    with fresh_inductor_cache(), observe(lambda report, _: kept.append(report)), pytest.raises(Exception):  # noqa: B017, PT011
        torch.compile(stored_into_an_input, options=options)(arange(24, 24), arange(4, 16, 16))
    assert [report.reinplaced for report in kept] == [["aten::select_scatter.self"]]
