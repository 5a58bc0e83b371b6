"""Pages of docs/, run as projects inside this process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# Hypothesis and others would be imported in each of these runs: most of their time.
_WITHOUT = "-p no:hypothesispytest -p no:benchmark -p no:anyio -p no:xdist -p no:cacheprovider"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.Pytester]:
    """Return an empty project that nothing outside of it configures."""
    import torch
    import torch._functorch.config as functorch_config

    for variable in [name for name in os.environ if name.startswith("REINPLACE_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PYTEST_ADDOPTS", _WITHOUT)
    monkeypatch.syspath_prepend(pytester.path)
    # Where CI is set, what is a warning elsewhere is an error: a result that aliases an argument.
    with functorch_config.patch(error_on_custom_op_aliasing=False):
        torch._dynamo.reset()
        yield pytester
