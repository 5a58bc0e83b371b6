"""What tests that compile programs by Inductor share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from pytest_reinplace.passes.oracle.setting import Setting


@pytest.fixture(autouse=True)
def every_kernel_unoptimized(unoptimized: None) -> None:
    """Compile C++ as ``unoptimized`` says, in every test here."""


@pytest.fixture
def quick() -> Iterator[None]:
    """Compile anew, from no cache, for one thread.

    With more threads Inductor calls a kernel for some programs on CPUs.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.compiler.reset()
    with Setting().in_force():
        yield
    torch.compiler.reset()
    torch.set_num_threads(threads)
