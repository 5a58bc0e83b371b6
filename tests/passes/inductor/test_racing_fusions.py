"""Fusions that would race are refused: everything is written in place, and right."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor import config, metrics
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import FusionVeto, Reason, Report, ScheduleCheck, inductor_options, observe
from pytest_reinplace.passes.inductor import stage
from pytest_reinplace.passes.inductor.defects import DEFECTS
from pytest_reinplace.passes.inductor.schedule import _torch, hook
from pytest_reinplace.passes.inductor.schedule.races import Races
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.oracle.setting import Setting
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph

from ..trace import functional
from .racing_programs import PROGRAMS, shifted, vectors

Tensor = torch.Tensor
FLIPPED = [name for name in PROGRAMS if name.startswith("flipped")]
FUSES = ".".join(torch.__version__.split(".")[:2]) in DEFECTS["racing-fusion"].seen


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings that are given once are given to each test."""
    hook.warn.cache_clear()


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_left_functional_for_the_sake_of_order(name: str) -> None:
    program = PROGRAMS[name]
    graph = functional(program.function, *program.inputs())[0].graph
    outcomes = analyze_graph(graph, Options(target=INDUCTOR)).outcomes
    assert Reason.LOWERING not in [o.reason for o in outcomes]


def wrong(names: list[str]) -> list[str]:
    """Compile programs together, where whatever may be fused with anything is, and name the wrong ones."""

    def every(given: list[tuple[Tensor, ...]]) -> list[Any]:
        return [PROGRAMS[name].function(*inputs) for name, inputs in zip(names, given, strict=True)]

    expected, given = ([PROGRAMS[name].inputs() for name in names] for _ in range(2))
    results = every(expected)
    torch.compiler.reset()
    metrics.reset()
    actual = torch.compile(every, fullgraph=True, options=inductor_options())(given)
    pairs = [zip((results[i], *e), (actual[i], *given[i]), strict=True) for i, e in enumerate(expected)]
    return [
        name
        for name, pair in zip(names, pairs, strict=True)
        if not all(torch.equal(one, other) for one, other in pair)
    ]


@pytest.mark.usefixtures("quick")
def test_compiled_programs_are_right() -> None:
    assert wrong(list(PROGRAMS)) == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", FLIPPED)
def test_a_store_is_not_fused_with_what_reads_flipped(name: str) -> None:
    """Each alone: among others it may be fused otherwise. The twin, unwatched, is wrong where torch fuses."""
    assert wrong([name]) == []
    with Setting(without=("racing-fusion",)).in_force():
        assert wrong([name]) == ([name] if FUSES else [])


@pytest.mark.usefixtures("quick")
def test_it_is_with_what_reads_another_one_flipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are written in place, computed they would not race: whether that is cheaper is not looked at."""
    monkeypatch.setattr(stage, "differs_for_speed", lambda _: False)
    counts = []
    for name in ("flipped_by_columns", "another_one_flipped"):
        assert wrong([name]) == []
        counts.append(metrics.generated_kernel_count)
    assert counts[0] == counts[1] + 1


def summed_beside(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """What is computed and returned is summed in the same kernel."""
    x[80:82] = 7
    y = w * 3
    return torch.stack((y.sum(), y[0])), y


def run_shifted(options: dict[str, Any], program: Callable[..., Any] = shifted) -> tuple[Report, bool]:
    """Compile a program that is wrong with a fusion; returns what was decided, and whether it is right."""
    expected, given, reports = vectors(), vectors(), []
    result = program(*expected)
    torch.compiler.reset()
    with fresh_inductor_cache(), observe(lambda report, _: reports.append(report)):
        actual = torch.compile(program, fullgraph=True, options=options)(*given)
    torch.compiler.reset()
    same = zip((*expected, *result), (*given, *actual), strict=True)
    return reports[0], all(torch.equal(one, other) for one, other in same)


def test_where_nobody_refuses_fusions_nothing_is_written_in_place(caplog: pytest.LogCaptureFixture) -> None:
    options = {**inductor_options(), _torch.BEFORE_FUSION: None}
    report, is_right = run_shifted(options)
    assert is_right and report.outcomes == ()
    assert _torch.BEFORE_FUSION in caplog.text


def test_a_torch_that_lacks_a_name_gets_nothing_in_place(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_torch, "_DEPENDENCIES", "torch._inductor.scheduler_that_is_no_more")
    report, is_right = run_shifted(inductor_options())
    assert is_right and report.outcomes == ()
    assert "scheduler_that_is_no_more" in caplog.text


@pytest.mark.parametrize(("step", "program"), [("between", summed_beside), ("__init__", shifted)])
def test_what_cannot_be_compared_is_not_fused(
    step: str,
    program: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(Races, step, fails)
    with caplog.at_level(logging.WARNING):
        report, is_right = run_shifted(inductor_options(), program)
    assert is_right and report.clones == []
    assert caplog.text.count("fusions are refused unseen on this torch: RuntimeError('no such thing')") == 1


class Users:
    """A pass of a user's that sees what is scheduled."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, nodes: list[Any]) -> list[Any]:
        self.seen += len(nodes)
        return nodes


def test_a_pass_of_the_user_runs_before() -> None:
    users = Users()
    with config.patch({_torch.BEFORE_FUSION: users}):
        options = inductor_options()
        report, is_right = run_shifted(options)
        assert inductor_options()[_torch.BEFORE_FUSION].before is users
    assert is_right and report.clones == [] and users.seen


def test_two_passes_of_the_user_are_kept_apart() -> None:
    """One that does not say what it is may be another one the next time."""
    assert FusionVeto().uuid() == FusionVeto().uuid()
    assert FusionVeto(Users()).uuid() != FusionVeto(Users()).uuid()
    assert FusionVeto(FusionVeto()).uuid() == FusionVeto(FusionVeto()).uuid()
    assert FusionVeto().uuid() != ScheduleCheck().uuid()
