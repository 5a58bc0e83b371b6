"""A torch that has lost a private name: the compile goes on, and its result is right."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache
from torch._inductor.codecache import FxGraphCache
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import _torch, inductor_options
from pytest_reinplace.passes.errors import SeamError

from ..trace import arange, ops

OURS = "pytest_reinplace.passes"
# Asked for when the options are made, so that users see the error there, before any compile.
AT_ONCE = ("torch._inductor", "config")
Name = tuple[str, str]


def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    old = x * 2
    old[0] = 3.0
    ops.scale(x[1], y[0])
    ops.some([old, y], None)
    return torch.cat([old + x, y], 0), x[1:]


@contextlib.contextmanager
def without(gone: Name | None) -> Iterator[set[Name]]:
    """Let torch have no such name for us, and yield the names that are asked for meanwhile."""
    real, asked = _torch.private, set[Name]()

    def private(module: str, name: str) -> object:
        asked.add((module, name))
        if (module, name) == gone:
            raise SeamError(f"expected {module}.{name}, found none (planted)")
        return real(module, name)

    importers = [module for module in ours() if getattr(module, "private", None) is real]
    forget()
    with pytest.MonkeyPatch.context() as patch:
        for module in importers:
            patch.setattr(module, "private", private)
        yield asked
    for module in ours():
        if getattr(module, "private", None) is private:  # it was imported meanwhile
            module.private = real
    forget()


def ours() -> list[Any]:
    """Return our modules that are imported by now."""
    return [module for name, module in list(sys.modules.items()) if name.startswith(OURS)]


def forget() -> None:
    """Forget what was kept of the names of torch, by the modules that ask for them."""
    for module in (module for module in ours() if hasattr(module, "private")):
        for value in list(vars(module).values()):
            if hasattr(value, "cache_clear") and str(getattr(value, "__module__", "")).startswith(OURS):
                value.cache_clear()


def right() -> bool:
    """Compile the program with our pass, and return whether it computes what it should."""
    torch._dynamo.reset()
    given, expected = [(arange(4, 3), torch.ones(4, 3)) for _ in range(2)]
    FxGraphCache.clear()  # graphs, but not kernels
    AOTAutogradCache.clear()
    results = torch.compile(program, fullgraph=True, options=inductor_options())(*given)
    torch.testing.assert_close((results, given), (program(*expected), expected))
    return True


@pytest.fixture(autouse=True)
def kernels_are_kept() -> Iterator[None]:
    """Keep kernels for all compiles of a test: most are the same, whatever is missing."""
    with fresh_inductor_cache():
        yield
    torch._dynamo.reset()


def test_a_compile_goes_on_without_any_one_of_the_names_that_it_asks_for() -> None:
    with without(None) as asked:
        assert right()
    assert {AT_ONCE, ("torch._guards", "TracingContext"), ("torch._ops", "OpOverload")} <= asked
    failed = {}
    for name in sorted(asked - {AT_ONCE}):
        with without(name):
            try:
                right()
            except Exception as error:  # noqa: BLE001  (collected)
                failed[name] = repr(error)[:200]
    assert not failed
    with without(AT_ONCE), pytest.raises(SeamError, match="planted"):
        inductor_options()
