"""What a pass of the user raises is told with its own frames, without those of torch and of the plugin."""

from __future__ import annotations

import re

import pytest

from pytest_reinplace.command.main import main

PASSES = """
def broken(gm):
    return inner(gm)

def inner(gm):
    raise ValueError("planted")
"""
CALLS = {
    "torch.compile(update)(*given)": "reinplace",
    "assert_reinplaced(update, *given)": "assert_reinplaced",
    "assert assert_clones(update, *given) == []": "assert_clones",
    "reinplace.run(update, *given)": "reinplace",
    "reinplace.apply(reinplace.trace(update, *given).gm)": "reinplace",
}
_PLACE = re.compile(r"^(\S+\.py):\d+: ")


def places(result: pytest.RunResult) -> list[str]:
    """Return the files of a traceback, in its order."""
    return [found[1] for line in result.outlines if (found := _PLACE.match(line))]


@pytest.mark.parametrize(("call", "fixture"), CALLS.items())
def test_the_frames_of_the_pass_follow_the_line_of_the_test(
    compiling: pytest.Pytester, call: str, fixture: str
) -> None:
    compiling.makepyfile(
        failing=PASSES,
        test_it=f"import torch\nfrom programs import inputs, update\ngiven = inputs(update)\n"
        f"def test_it({fixture}):\n    {call}\n",
    )
    result = compiling.runpytest("--reinplace-pass=failing:broken", "--show-capture=no")
    assert places(result) == ["test_it.py", "failing.py", "failing.py"]
    result.stdout.fnmatch_lines(["*raised by pass failing:broken, given a GraphModule of *"])


def test_those_of_an_entry_are_alone(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        failing=PASSES,
        building="import programs, pytest_reinplace\ndef build(device):\n"
        "    fn = programs.update\n    return pytest_reinplace.Program(fn, programs.inputs(fn))\n",
    )
    entry = "builder: building:build\nclones: {exact: []}\n"
    (compiling.path / "update.reinplace.yaml").write_text(entry)
    result = compiling.runpytest("--reinplace-pass=failing:broken", "--show-capture=no")
    assert places(result) == ["failing.py", "failing.py"]


def test_any_other_error_keeps_its_frames(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(
        test_it="import torch\ndef test_it(reinplace):\n"
        "    torch.compile(lambda x: x @ x)(torch.ones(2, 3))\n"
    )
    assert len(places(compiling.runpytest("--show-capture=no"))) > 3


def test_the_command_prints_those_of_the_pass(
    compiling: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    compiling.makepyfile(
        failing_too=PASSES, given="import programs\nfn = lambda: programs.inputs(programs.update)"
    )
    ask = ["explain", "programs:update", "--inputs", "given:fn", "--backend", "graph"]
    assert main([*ask, "--pass", "failing_too:broken"]) == 2
    files = re.findall(r'^  File ".*?([^/]+)", line', capsys.readouterr().err, re.MULTILINE)
    assert files == ["failing_too.py", "failing_too.py"]
