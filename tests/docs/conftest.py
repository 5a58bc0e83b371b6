"""Pages of docs/, run as projects inside this process."""

from __future__ import annotations

import os

import pytest

# Hypothesis and others would be imported in each of these runs: most of their time.
_WITHOUT = "-p no:hypothesispytest -p no:benchmark -p no:anyio -p no:xdist -p no:cacheprovider"


@pytest.fixture(scope="session")
def warm() -> None:
    """Compile once outside: pytester forgets what a run inside it imports, and torch cannot bear that."""
    import contextlib

    import torch
    import torch.distributed

    from pytest_reinplace.capture import Capture

    from ..plugin.programs import keep, read_row

    with contextlib.suppress(ImportError):
        import triton.language  # noqa: F401
    for name in ("inductor", "exact"):
        with Capture(name, "graph"):
            torch.compile(keep)(torch.ones(4))
            torch.compile(read_row, dynamic=True)(torch.ones(4, 4, requires_grad=True), 1).backward()


@pytest.fixture
def project(warm: None, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return an empty project that nothing outside of it configures."""
    import torch

    for variable in [name for name in os.environ if name.startswith("REINPLACE_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PYTEST_ADDOPTS", _WITHOUT)
    monkeypatch.syspath_prepend(pytester.path)
    torch._dynamo.reset()
    return pytester
