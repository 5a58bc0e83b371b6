"""What tests share: how torch computes and compiles in them, and what runs of pytest inside need."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

# Before torch is imported, here and in each process that a test starts. Workers have a core each: with a
# thread for every core they would be in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Else each process that compiles asks the C++ compiler, and a Python that imports torch, whether vector
# instructions work: four seconds.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")


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
def unoptimized() -> Iterator[None]:
    """Let C++ be compiled without optimization: Inductor's kernels are quicker to build, and do the same."""
    from torch._inductor import config

    from pytest_reinplace.passes.oracle.setting import quick_compiler

    compiler = quick_compiler()
    with config.patch({"cpp.cxx": (None, compiler)} if compiler else {}):
        yield


@pytest.fixture
def pytester(warm: None, pytester: pytest.Pytester) -> pytest.Pytester:
    """Return pytest's own, after ``warm``: whichever of these tests a worker runs first imports torch."""
    return pytester


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start Chromium; a test that asks for it is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    chromium = next(found, None)
    if chromium is None:
        pytest.skip("no Chromium")
    with playwright.sync_playwright() as p:
        started = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()
