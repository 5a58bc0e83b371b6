"""Random programs, compiled by Inductor with our passes, against eager mode.

``REINPLACE_PROGRAMS=1000 pytest tests/passes/test_compiled_programs.py`` compiles so many, from
``REINPLACE_FIRST_PROGRAM`` on (one or two seconds each).
"""

from __future__ import annotations

import os

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import inductor_options

from .compiled_program import CompiledProgram

_TOGETHER = 5
_COUNT = int(os.environ.get("REINPLACE_PROGRAMS", "10"))
_FIRST = int(os.environ.get("REINPLACE_FIRST_PROGRAM", "0"))


def wrong(program: CompiledProgram) -> str:
    """Return what a compiled program makes wrong; nothing where it is right."""
    function, expected, given = program.function(), program.inputs(), program.inputs()
    results = function(*expected)
    torch._dynamo.reset()
    actual = torch.compile(function, fullgraph=True, options=inductor_options())(*given)
    for i, (one, other) in enumerate(zip((*results, *expected), (*actual, *given), strict=True)):
        if not torch.equal(one, other):
            what = f"result {i}" if i < len(results) else f"input {i - len(results)}"
            return f"{what} of seed {program.seed} differs\n{program.source}"
    return ""


@pytest.mark.parametrize("first", range(_FIRST, _FIRST + _COUNT, _TOGETHER))
def test_compiled_programs_do_what_eager_mode_does(first: int) -> None:
    with fresh_inductor_cache():
        for seed in range(first, min(first + _TOGETHER, _FIRST + _COUNT)):
            assert wrong(CompiledProgram(seed)) == ""
    torch._dynamo.reset()


def test_a_program_of_a_seed_is_the_same_again() -> None:
    assert CompiledProgram(3).source == CompiledProgram(3).source != CompiledProgram(4).source
    assert all(map(torch.equal, CompiledProgram(3).inputs(), CompiledProgram(3).inputs()))


def test_what_differs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    program = CompiledProgram(3)
    program.source = (
        "def program(a, b, w, v, i):\n    b.add_(torch.compiler.is_compiling() * 1)\n    return [a]\n"
    )
    assert "input 1 of seed 3 differs" in wrong(program)
