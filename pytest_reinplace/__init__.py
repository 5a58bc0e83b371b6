"""pytest-reinplace: a pytest plugin that asserts, explains and gates reinplacing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .call.program import Program

__all__ = ["Program"]


def __getattr__(name: str) -> Any:
    """Load what is asked for: the plugin is loaded in every session of pytest and needs none of it."""
    if name == "Program":
        from .call.program import Program

        return Program
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
