"""Projects whose tests compile, run inside this process."""

from __future__ import annotations

import os

import pytest

from .programs import PROGRAMS


@pytest.fixture
def compiling(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a project with ``programs.py`` whose tests compile by the graph backend by default."""
    for variable in [name for name in os.environ if name.startswith("REINPLACE_")]:
        monkeypatch.delenv(variable)
    # Hypothesis would be imported, with its assertions rewritten, in each of these runs: most of their time.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:benchmark -p no:anyio")
    monkeypatch.syspath_prepend(pytester.path)
    pytester.makepyfile(programs=PROGRAMS)
    pytester.makeini("[pytest]\nreinplace_backend = graph\n")
    return pytester
