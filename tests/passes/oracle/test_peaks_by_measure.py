"""Where a program holds more with our passes than with Inductor's, the measure that is the reason is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.defects import defended
from pytest_reinplace.passes.oracle import peaks
from pytest_reinplace.passes.oracle.call import kept_inputs
from pytest_reinplace.passes.oracle.case import Judged
from pytest_reinplace.passes.oracle.peaks import Reason, reasons, table
from pytest_reinplace.passes.oracle.setting import Setting

from ..trace import ops

HARD = Setting(hard=True)


class Heights:
    """Stands for a program that holds more while we do something about one defect, and is wrong without."""

    def __init__(self, program: object, setting: Setting) -> None:
        pass

    def judged(self, options: dict[str, Any]) -> Judged:
        if defended("list-of-one"):
            return Judged("", peak=200 if options else 100)
        return Judged("another value", peak=100)


def only_reason(
    monkeypatch: pytest.MonkeyPatch, program: Callable[..., Any], *inputs: torch.Tensor
) -> Reason:
    """Return why a program would hold more if it did, where no measure of ours is the reason."""

    class Compiling(Heights):
        def judged(self, options: dict[str, Any]) -> Judged:
            torch.compiler.reset()
            torch.compile(program, options=options)(*inputs)
            return Judged("", peak=32 if options else 16)

    monkeypatch.setattr(peaks, "Case", Compiling)
    monkeypatch.setattr(peaks, "_measures", lambda setting: iter(()))
    with fresh_inductor_cache():
        (reason,) = reasons(0, HARD)
    return reason


def test_a_measure_without_which_no_more_is_held_is_named_on_each_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peaks, "Case", Heights)
    assert reasons(0, HARD) == [Reason(0, "list-of-one", is_needed=True)]
    monkeypatch.setattr(peaks, "DEFECTS", ("late-epilogue",))
    assert reasons(0, HARD) == [Reason(0, "no measure alone")]


def test_a_clone_that_the_contract_asks_for_is_named_where_no_measure_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Inductor's own removal of no-ops lets both results share storage."""

    def program(x: torch.Tensor) -> list[torch.Tensor]:
        y = x.sin()
        return [y, y.clone()]

    reason = only_reason(monkeypatch, program, torch.ones(4))
    assert reason.name.startswith("a clone: the result is returned")


def test_a_schedule_of_inductors_own_that_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value is computed where it is stored, behind an operator that has written what it is computed of."""

    def program(x: torch.Tensor, z: torch.Tensor) -> None:
        y = x + 1
        ops.scale(x, x.new_ones(()))
        z.copy_(y)

    reason = only_reason(monkeypatch, program, torch.ones(4), torch.ones(4))
    assert reason.name.startswith("Inductor's own schedule is wrong")


@pytest.mark.parametrize("defect", ["late-epilogue", "merged-outputs"])
def test_what_is_done_about_no_ops_is_one_measure(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Copying(Heights):
        def judged(self, options: dict[str, Any]) -> Judged:
            return Judged("", peak=200 if options and defended(defect) else 100)

    monkeypatch.setattr(peaks, "Case", Copying)
    monkeypatch.setattr(peaks, "DEFECTS", ("list-of-one",))
    assert [reason.name for reason in reasons(0, HARD)] == ["late-epilogue, merged-outputs"]


def test_an_input_that_is_kept_for_the_backward_is_told() -> None:
    """By Inductor's own pass the backward writes into it where it may; ours keeps a copy."""

    def program(x: torch.Tensor, v: torch.Tensor) -> list[torch.Tensor]:
        x[7:12, 1:4][[0, 2]] = x[7:12, 1:4][[2, 0]]
        return [(x * v).relu()]

    kept, unchanged = [], []
    for options in ({}, inductor_options()):
        torch.compiler.reset()
        compiled = torch.compile(program, fullgraph=True, options=options)
        x, v = torch.arange(48.0).view(12, 4), torch.ones(12, 4, requires_grad=True)
        kept.append(kept_inputs(compiled, [x, v]))
        (result,) = compiled(x, v)
        before = x.clone()
        result.sum().mul(3).backward()
        unchanged.append(torch.equal(x, before))
    assert kept == [1, 0]
    assert unchanged == [False, True]


def test_a_program_that_holds_no_more_has_no_reason() -> None:
    assert reasons(110000000, HARD) == []


def test_the_table_counts_programs_and_those_that_are_wrong_without() -> None:
    found = [[Reason(1, "first", is_needed=True), Reason(1, "second")], [Reason(2, "first")], []]
    assert table(found).splitlines()[1:] == [
        "        2              1  first",
        "        1              0  second",
    ]


def test_what_no_measure_explains_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peaks.Processes, "results", lambda self, seeds, _: [[Reason(n, "?")] for n in seeds])
    assert peaks.main(["7"]) == 0
    monkeypatch.setattr(peaks, "_SEVERAL", "?")
    assert peaks.main(["7"]) == 1
    assert "seed 7: ?" in capsys.readouterr().out
