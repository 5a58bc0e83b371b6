"""Random programs, compiled by Inductor with our passes, against eager mode.

``REINPLACE_PROGRAMS=1000 pytest tests/passes/oracle/test_compiled_programs.py`` compiles so many, from
``REINPLACE_FIRST_PROGRAM`` on (one or two seconds each).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.capture import triton_cpu
from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.fuzz.program import RandomProgram
from pytest_reinplace.passes.oracle import compiled

_TOGETHER = 5
_COUNT = int(os.environ.get("REINPLACE_PROGRAMS", "10"))
_FIRST = int(os.environ.get("REINPLACE_FIRST_PROGRAM", "0"))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("first", range(_FIRST, _FIRST + _COUNT, _TOGETHER))
def test_compiled_programs_do_what_eager_mode_does(first: int) -> None:
    with fresh_inductor_cache():
        for seed in range(first, min(first + _TOGETHER, _FIRST + _COUNT)):
            program = RandomProgram(seed)
            found = compiled.problem(program, inductor_options())
            assert not found or compiled.is_unfit(program), f"seed {seed}: {found}\n{program.source}"


@pytest.mark.parametrize("setting", [compiled.Setting(dynamic=True), compiled.Setting(triton=True)])
def test_compiled_programs_with_symbols_and_with_triton_do_what_eager_mode_does(
    setting: compiled.Setting,
) -> None:
    if setting.triton:
        pytest.importorskip("triton")
    with fresh_inductor_cache(), triton_cpu.working():
        for fate in compiled.fates(range(4), ["exact"], setting):
            assert not any(fate.problems.values()), f"{fate}\n{setting.program(fate.seed).source}"


def test_a_triton_kernel_is_launched_where_it_is_asked_for() -> None:
    pytest.importorskip("triton")
    sources = [[RandomProgram(seed, has_triton=t).source for seed in range(30)] for t in (False, True)]
    assert [any("stir(" in source for source in some) for some in sources] == [False, True]
    program = Chosen("stir(a.view(-1)[0:2], w.view(-1)[0:2])", has_triton=True)
    expected, actual = program.inputs(), program.inputs()
    with triton_cpu.working():
        program.function()(*actual)
    written, other = expected[0].view(-1)[0:2], expected[2].view(-1)[0:2]
    written.copy_(written * 3 + 1 + other)
    assert all(map(torch.equal, expected, actual))


def test_some_inputs_lie_in_one_storage_and_some_have_gaps() -> None:
    given = [RandomProgram(seed).inputs() for seed in range(60)]
    counts = {len({t.untyped_storage().data_ptr() for t in some[:4]}) for some in given}
    assert counts == {1, 4}
    assert {some[0].is_contiguous() for some in given} == {True, False}


def test_a_program_of_a_seed_is_the_same_again() -> None:
    assert RandomProgram(3).source == RandomProgram(3).source != RandomProgram(4).source
    assert all(map(torch.equal, RandomProgram(3).inputs(), RandomProgram(3).inputs()))


def test_programs_run_in_eager_mode() -> None:
    for seed in range(300):
        program = RandomProgram(seed)
        program.function()(*program.inputs())


class Chosen(RandomProgram):
    """A program whose lines are given."""

    def __init__(self, *lines: str, returned: tuple[str, ...] = (), has_triton: bool = False) -> None:
        super().__init__(3, has_triton)
        self.lines, self.returned = list(lines), list(returned)


IS_COMPILED = "torch.compiler.is_compiling()"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (f"b.add_({IS_COMPILED} * 1)", "input 1 differs"),
        (f"z0 = a + {IS_COMPILED} * 1", "result 0 differs"),
        (f"z0 = a.double() if {IS_COMPILED} else a", "result 0 differs"),
        (f"z0 = a[{IS_COMPILED} * 1 :]", "result 0 differs"),
        ("z0 = a * 1", ""),
    ],
)
def test_what_differs_is_told(line: str, found: str) -> None:
    program = Chosen(line, returned=("z0",) if line.startswith("z0") else ())
    assert compiled.problem(program, inductor_options()) == found


def test_what_is_not_compiled_is_told() -> None:
    assert compiled.problem(Chosen("print(torch.tensor(a.sum().item()))"), {}).startswith("raises ")


def test_a_program_that_no_pass_can_mend_is_told_from_others() -> None:
    assert compiled.is_unfit(Chosen(f"b.add_({IS_COMPILED} * 1)"))
    assert compiled.is_unfit(Chosen("print(torch.tensor(a.sum().item()))"))
    assert not compiled.is_unfit(Chosen("b.add_(1)"))


def test_what_eager_mode_refuses_is_raised() -> None:
    with pytest.raises(NameError, match="nothing"):
        compiled.problem(Chosen("nothing"), {})


def test_a_program_is_made_small() -> None:
    lines = ("z0 = a * 2", "z1 = z0 * 3", "z0[0:2] = 5", "z2 = w * 2", "b.add_(1)")
    program = Chosen(*lines, returned=("z0", "z1.sum()", "z2"))
    small = compiled.minimal(program, lambda p: bool(p.function()(*p.inputs())) and "z0[0:2] = 5" in p.lines)
    assert small.lines == ["z0 = a * 2", "z0[0:2] = 5"]
    assert small.returned == ["z0"]
    assert program.lines == list(lines)  # the program itself is as it was


def test_the_command_counts_and_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def problem(program: RandomProgram, options: dict[str, Any], setting: compiled.Setting) -> str:
        program.function()(*program.inputs(setting.device))
        if program.seed == 1 and options and len(program.lines) > 1:
            return "result 0 differs"
        return "raises KeyError: 'op1'" if program.seed == 2 and not options else ""

    monkeypatch.setattr(compiled, "problem", problem)
    monkeypatch.setattr(compiled, "is_unfit", lambda program, setting: program.seed == 3)
    assert compiled.main(["--programs", "4", "--beside"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines.pop(0) == "seed 1: exact: result 0 differs; inductor: right"  # when it is found
    assert lines.pop(0) == "seed 2: exact: right; inductor: raises KeyError: 'op1'"
    assert [line.split() for line in lines[1:3]] == [
        ["exact", "3", "2", "1", "0", "1"],
        ["inductor", "3", "2", "0", "1", "1"],
    ]
    assert "left out: 1 that eager mode or AOTAutograd refuses, or makes another program of" in lines
    assert "seeds that exact fails: 1" in lines
    assert "# seed 1: exact: result 0 differs; inductor: right" in lines
    assert sum(line.startswith("    ") for line in lines) == 3  # two lines, and what is returned
    assert compiled.main(["--programs", "4", "--side", "inductor"]) == 0  # it raises, and tells


def test_a_process_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_tried", None)  # in this one nothing is tried, which a program could end
    found = list(compiled.fates(range(3, 5), ["inductor"], jobs=1))
    assert found == [compiled.Fate(3, {"inductor": ""}), compiled.Fate(4, {"inductor": ""})]


def test_no_program_is_begun_when_the_time_is_over() -> None:
    assert list(compiled.fates(range(4), ["inductor"], jobs=2, seconds=-1)) == []
    assert compiled.main(["--seconds", "-1"]) == 0
