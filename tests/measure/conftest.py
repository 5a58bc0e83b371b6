"""Projects whose entries are measured, run inside this process."""

from __future__ import annotations

from ..plugin.conftest import compiling

__all__ = ["compiling"]
