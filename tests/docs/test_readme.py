"""The README: short, and its program does in Inductor what the README says."""

from __future__ import annotations

import runpy

import pytest
import torch

from ..house.checkout import ROOT
from .page import blocks

README = (ROOT / "README.md").read_text()


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 200


def test_inductor_gets_the_program_wrong(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    found = list(blocks(README))
    program = next(block for block in found if block.title == "symmetric.py")
    shown = next(block.text for block in found if block.text.startswith("$ python symmetric.py\n"))
    path = project.path / program.title
    path.write_text(program.text)
    torch._dynamo.reset()
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed == shown.partition("\n")[2]
    eager, compiled = printed.splitlines()
    assert eager != compiled
