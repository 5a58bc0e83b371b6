"""pytest-reinplace: a pytest plugin that asserts, explains and gates reinplacing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assertions import AssertClones, AssertReinplaced
    from .call.program import Program
    from .call.trace import Traced
    from .copy_assertions import AssertCopies
    from .graph_assertions import AssertGraph
    from .peak_assertions import AssertPeak
    from .workbench import Reinplace

__all__ = [
    "AssertClones",
    "AssertCopies",
    "AssertGraph",
    "AssertPeak",
    "AssertReinplaced",
    "Program",
    "Reinplace",
    "Traced",
]

_HOMES = {
    "AssertClones": ".assertions",
    "AssertCopies": ".copy_assertions",
    "AssertGraph": ".graph_assertions",
    "AssertPeak": ".peak_assertions",
    "AssertReinplaced": ".assertions",
    "Program": ".call.program",
    "Reinplace": ".workbench",
    "Traced": ".call.trace",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: the plugin is loaded in every session of pytest and needs none of it."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
