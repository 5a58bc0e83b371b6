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


@pytest.fixture
def exact(compiling: pytest.Pytester) -> pytest.Pytester:
    """Return the same project, with our pass under test."""
    compiling.makeini("[pytest]\nreinplace_pass = exact\n")
    return compiling


@pytest.fixture
def forced(compiling: pytest.Pytester) -> pytest.Pytester:
    """Return the same project with a pass that writes every ``index_put`` in place, right or wrong."""
    compiling.makepyfile(
        forcing="""
        import torch
        def forced(graph: torch.fx.Graph) -> None:
            for node in graph.find_nodes(op="call_function", target=torch.ops.aten.index_put.default):
                node.target = torch.ops.aten.index_put_.default
        """
    )
    compiling.makeini("[pytest]\nreinplace_backend = graph\nreinplace_pass = forcing:forced\n")
    return compiling
