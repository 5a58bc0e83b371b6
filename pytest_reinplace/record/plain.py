"""Outcomes as data, without torch.

The face of ``passes`` imports torch, which takes seconds. Its modules ``report`` and ``reason`` do not, and
whoever only words a report that was written before needs nothing else of it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Mapping
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


def others() -> tuple[str, ...]:
    """Return the fields of an outcome that name another candidate."""
    return _module("report").OTHERS  # type: ignore[no-any-return]


def told(outcome: Mapping[str, Any], sentence: str) -> str:
    """Return why a clone was made, as its own outcome would say it.

    Args:
        outcome: as ``Outcome.to_dict`` gives it.
        sentence: that of its reason.
    """
    if outcome.get("follows"):
        sentence = consequence_of(named(outcome["follows"]))
    report = _module("report")
    return (
        f"{sentence}; {report.copies_all_of(named(outcome['copies']))}" if outcome.get("copies") else sentence
    )


def consequence_of(cause: str) -> str:
    """Return why a clone that follows from another one, ``"<label> at <line>"``, was made."""
    return str(_module("report").consequence_of(cause))


def named(other: Mapping[str, Any]) -> str:
    """Return another candidate as an outcome names it: ``"<label> at <line>"``."""
    return f"{other['label']} at {other['source']}" if other["source"] else str(other["label"])


def applied() -> types.ModuleType:
    """Return ``passes.applied``, or its twin, which words what a rule did."""
    return _module("applied")  # type: ignore[no-any-return]


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
