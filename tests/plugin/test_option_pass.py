"""--reinplace-pass."""

from __future__ import annotations

import sys

import pytest

USES = """
import torch
from programs import *

def test_it(assert_clones, reinplace):
    loss = torch.compile(read_row)(*inputs(read_row))
    loss.backward()
    assert {graph.pass_name for graph in reinplace.graphs} == {PASS}
    assert assert_clones == CLONES
"""
MISSED = ["aten::select_scatter.self"]
CHOICES = "expected one of inductor, exact, post_grad or package.module:attribute"

PASSES = """
import torch

called = []

def over_module(gm):
    assert isinstance(gm, torch.fx.GraphModule)
    called.append("module")

def over_graph(graph: torch.fx.Graph) -> None:
    assert isinstance(graph, torch.fx.Graph)
    called.append("graph")

class Nested:
    attribute = staticmethod(over_module)

number = 3
"""


def write(project: pytest.Pytester, pass_name: str, clones: list[str]) -> None:
    project.makepyfile(
        test_it=USES.replace("PASS", repr(pass_name)).replace("CLONES", repr(clones)), my_passes=PASSES
    )


def test_the_stack_as_it_is_by_default(compiling: pytest.Pytester) -> None:
    write(compiling, "inductor", MISSED)
    compiling.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.parametrize(("name", "clones"), [("inductor", MISSED), ("exact", []), ("post_grad", [])])
def test_a_named_pass(compiling: pytest.Pytester, name: str, clones: list[str]) -> None:
    write(compiling, name, clones)
    compiling.runpytest_inprocess(f"--reinplace-pass={name}").assert_outcomes(passed=1)


@pytest.mark.parametrize("attribute", ["over_module", "over_graph", "Nested.attribute"])
def test_a_pass_by_module_and_attribute(compiling: pytest.Pytester, attribute: str) -> None:
    name = f"my_passes:{attribute}"
    write(compiling, name, MISSED)
    compiling.runpytest_inprocess(f"--reinplace-pass={name}").assert_outcomes(passed=1)


def test_a_pass_is_found_in_the_rootdir(compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(compiling.path)])
    write(compiling, "my_passes:over_module", MISSED)
    compiling.makepyfile(test_it="def test_it(reinplace): assert reinplace")
    compiling.runpytest_inprocess("--reinplace-pass=my_passes:over_module").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "nosuch",
            f"--reinplace-pass: {CHOICES}, got 'nosuch'",
        ),
        (
            "a-b:c",
            f"--reinplace-pass: {CHOICES}, got 'a-b:c'",
        ),
        (
            "",
            f"--reinplace-pass: {CHOICES}, got ''",
        ),
        (
            "no.such:f",
            "--reinplace-pass: pass 'no.such:f': module 'no.such' cannot be imported: ModuleNotFoundError: "
            "No module named 'no'; it is looked for on sys.path and in {root}",
        ),
        (
            "imports_none:f",
            "--reinplace-pass: pass 'imports_none:f': module 'imports_none' cannot be imported: "
            "ModuleNotFoundError: No module named 'no' (at *imports_none.py:1)",
        ),
        (
            "my_passes:over_modul",
            "--reinplace-pass: pass 'my_passes:over_modul': <module 'my_passes' *> has no attribute "
            "'over_modul': did you mean 'over_module'?",
        ),
        (
            "my_passes:Nested.atribute",
            "--reinplace-pass: pass 'my_passes:Nested.atribute': * has no attribute 'atribute': did you mean "
            "'attribute'?",
        ),
        (
            "my_passes:number",
            "--reinplace-pass: pass 'my_passes:number': expected a callable over a graph, got 3",
        ),
    ],
)
def test_a_wrong_name_stops_the_session(compiling: pytest.Pytester, name: str, message: str) -> None:
    write(compiling, "inductor", [])
    compiling.makepyfile(imports_none="import no.such")
    message = message.replace("{root}", str(compiling.path))
    result = compiling.runpytest_inprocess(f"--reinplace-pass={name}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}".replace("[", "[[]")])
