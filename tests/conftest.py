"""What tests that run pytest inside this process share."""

from __future__ import annotations

import contextlib

import pytest


@pytest.fixture(scope="session")
def warm() -> None:
    """Compile once outside: pytester forgets what a run inside it imports, and torch cannot bear that."""
    import torch
    import torch._inductor.lowering
    import torch.distributed

    from pytest_reinplace.capture.capture import Capture

    from .plugin.programs import keep, read_row

    with contextlib.suppress(ImportError):
        import triton.language  # noqa: F401
    for name in ("inductor", "exact"):
        with Capture(name, "graph"):
            torch.compile(keep)(torch.ones(4))
            torch.compile(read_row, dynamic=True)(torch.ones(4, 4, requires_grad=True), 1).backward()


@pytest.fixture
def pytester(warm: None, pytester: pytest.Pytester) -> pytest.Pytester:
    """Return pytest's own, after ``warm``: whichever of these tests a worker runs first imports torch."""
    return pytester
