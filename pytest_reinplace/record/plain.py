"""Outcomes as data, without torch.

The face of ``passes`` imports torch, which takes seconds. Its modules ``report`` and ``reason`` do not, and
whoever only words a report that was written before needs nothing else of it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..passes import Outcome, Reason

_FACE = "pytest_reinplace.passes"
# A package that has the same folder and an empty face; importlib keeps its modules apart from the real ones.
_PLAIN = "pytest_reinplace._plain"


def outcome_type() -> type[Outcome]:
    """Return ``passes.Outcome``, or its twin when ``passes`` is not imported already."""
    return _module("report").Outcome  # type: ignore[no-any-return]


def reason_type() -> type[Reason]:
    """Return ``passes.Reason``, or its twin when ``passes`` is not imported already."""
    return _module("reason").Reason  # type: ignore[no-any-return]


def _module(name: str) -> Any:
    if f"{_FACE}.{name}" in sys.modules:
        return sys.modules[f"{_FACE}.{name}"]
    if _PLAIN not in sys.modules:
        spec = importlib.util.find_spec(_FACE)
        assert spec is not None
        package = types.ModuleType(_PLAIN)
        package.__path__ = list(spec.submodule_search_locations or ())
        sys.modules[_PLAIN] = package
    return importlib.import_module(f"{_PLAIN}.{name}")
