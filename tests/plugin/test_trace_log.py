"""Torch's trace log is off in tests: on, it prints each graph of a compile several times."""

from __future__ import annotations

import json

import pytest

TESTS = """
import json
import logging
import pathlib

import pytest
import torch

LOG = logging.getLogger("torch.__trace")
OWN = logging.NullHandler()
FOUND = []

def attached():
    return any(type(h).__module__.startswith("_pytest.") for h in LOG.handlers)

@pytest.fixture(autouse=True, scope="module")
def own():
    LOG.addHandler(OWN)
    yield
    LOG.removeHandler(OWN)
    pathlib.Path("found.json").write_text(json.dumps(FOUND))

@pytest.fixture
def prepared():
    FOUND.append(attached())

@pytest.mark.parametrize("number", range(2))
def test_it(number, prepared, caplog):
    FOUND.append(attached())
    assert OWN in LOG.handlers
    logging.getLogger("other").warning("said")
    assert caplog.messages == ["said"]
"""


def found(project: pytest.Pytester, *options: str) -> list[bool]:
    """Run the tests; return whether pytest listened, in a fixture and in the test, of each of them."""
    project.makepyfile(TESTS)
    project.runpytest_inprocess(*options).assert_outcomes(passed=2)
    return list(json.loads((project.path / "found.json").read_text()))


@pytest.mark.parametrize("options", [(), ("-olog_cli=true",)], ids=["plain", "live"])
def test_pytest_does_not_listen_and_others_do(compiling: pytest.Pytester, options: tuple[str, ...]) -> None:
    assert found(compiling, *options) == [False] * 4


def test_where_we_are_switched_off_pytest_listens(compiling: pytest.Pytester) -> None:
    """The twin: what the tests above would find without us."""
    listens = found(compiling, "--reinplace-disable")
    if not any(listens):
        pytest.skip("this pytest listens to the loggers that propagate alone")
    assert listens == [True] * 4
