"""Random programs are compiled by processes that may end before their time."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence

import pytest

from pytest_reinplace.passes.oracle.processes import Processes


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process finds the functions below by the name of this module."""
    root = pathlib.Path(__file__).parents[__name__.count(".")]
    monkeypatch.setattr(sys, "path", [*sys.path, str(root)])


def squares(numbers: Sequence[int]) -> list[int]:
    if 5 in numbers:
        os._exit(3)
    return [number**2 for number in numbers]


def fails(numbers: Sequence[int]) -> list[int]:
    raise ZeroDivisionError(numbers)


def lost(number: int) -> int:
    return -number


def test_what_ends_a_process_is_told_and_the_rest_is_done() -> None:
    found = list(Processes(squares, lost, jobs=2).results(range(12), together=4))
    assert found == [0, 1, 4, 9, 16, -5, 36, 49, 64, 81, 100, 121]


def test_an_error_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        list(Processes(fails, lost, jobs=1).results(range(3), together=2))
