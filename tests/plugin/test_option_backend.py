"""--reinplace-backend."""

from __future__ import annotations

import pytest
import torch._inductor.config

USES = """
import torch
from programs import *

def test_it(assert_reinplaced, reinplace):
    args = inputs(update)
    result = assert_reinplaced(update, *args)
    assert torch.equal(result, torch.full((2,), 2.0))
    assert args[0].tolist() == [0, 1, 0, 1, 0, 0, 0, 0]
    (graph,) = reinplace.graphs
    assert graph.backend == BACKEND
"""


def test_graph_generates_no_code(compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch._inductor.compile_fx.fx_codegen_and_compile", _refuse)
    compiling.makepyfile(USES.replace("BACKEND", "'graph'"))
    compiling.makeini("[pytest]\n")
    compiling.runpytest_inprocess("--reinplace-backend=graph").assert_outcomes(passed=1)


def test_inductor_generates_code(compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch._inductor.compile_fx.fx_codegen_and_compile", _refuse)
    compiling.makepyfile(USES.replace("BACKEND", "'inductor'"))
    result = compiling.runpytest_inprocess("--reinplace-backend=inductor")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*code generation was asked for*"])


def test_an_unknown_backend_stops_the_session(compiling: pytest.Pytester) -> None:
    result = compiling.runpytest_inprocess("--reinplace-backend=eager")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --reinplace-backend: expected one of inductor, graph, got 'eager'"])


def _refuse(*args: object, **kwargs: object) -> None:
    raise RuntimeError("code generation was asked for")


def test_an_error_that_it_helps_against_names_it(
    compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where no C++ compiler is installed; torch names no way without one."""
    monkeypatch.setenv("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
    compiling.makepyfile(
        "from programs import *\ndef test_it(assert_reinplaced): assert_reinplaced(update, *inputs(update))"
    )
    with torch._inductor.config.patch({"cpp.cxx": (None, "/no/such/c++")}):
        result = compiling.runpytest_inprocess("--reinplace-backend=inductor")
    result.assert_outcomes(failed=1)
    note = "E *--reinplace-backend=graph needs no C++ compiler: it generates no code"
    result.stdout.fnmatch_lines(["E *InvalidCxxCompiler: *", note])
    compiling.runpytest_inprocess("--reinplace-backend=graph").assert_outcomes(passed=1)


def test_other_errors_are_left_as_they_are(compiling: pytest.Pytester) -> None:
    compiling.makepyfile("def test_it(reinplace): raise ValueError('mine')")
    compiling.runpytest_inprocess().stdout.no_fnmatch_line("*--reinplace-backend*")
