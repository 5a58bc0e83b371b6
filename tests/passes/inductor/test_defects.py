"""The register of defects: each row is read by what it names, has a program, and can be switched off."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
import torch

from pytest_reinplace import passes
from pytest_reinplace.passes import ReinplacePass
from pytest_reinplace.passes.inductor.defects import DEFECTS, VERSIONS, defended, switched_off, undefended

from .defect_programs import PROGRAMS


def test_every_defect_has_a_program_that_shows_it() -> None:
    assert list(PROGRAMS) == list(DEFECTS)


@pytest.mark.parametrize("row", DEFECTS.values(), ids=DEFECTS)
def test_what_a_row_names_is_there(row: object) -> None:
    module, _, name = row.by.rpartition(".")  # type: ignore[attr-defined]
    assert callable(getattr(importlib.import_module(f"{passes.__name__}.inductor.{module}"), name))
    assert row.symptom.endswith(".")  # type: ignore[attr-defined]
    assert {*row.right, *row.unknown} <= set(VERSIONS)  # type: ignore[attr-defined]


def test_every_row_is_read_and_nothing_else() -> None:
    folder = Path(inspect.getfile(passes)).parent
    read = {
        n for path in folder.rglob("*.py") for n in re.findall(r'defended\("([^"]+)"\)', path.read_text())
    }
    assert read == DEFECTS.keys()


def test_a_row_is_switched_off_inside_only() -> None:
    first, second = list(DEFECTS)[:2]
    assert defended(first)
    with undefended(first), undefended(first, second):
        assert not defended(first) and not defended(second)
        assert switched_off() == tuple(sorted((first, second)))
    assert switched_off() == ()
    with pytest.raises(KeyError), undefended("no such row"):
        pass
    assert switched_off() == ()


def test_what_is_compiled_without_a_defence_is_kept_apart() -> None:
    known = ReinplacePass().uuid()
    with undefended("written-twice"):
        assert ReinplacePass().uuid() != known
    assert ReinplacePass().uuid() == known


def test_the_programs_run() -> None:
    for name, program in PROGRAMS.items():
        if not DEFECTS[name].gpu or torch.cuda.is_available():
            program.function(*program.inputs())
