"""Who looks on while one graph is compiled, from a room above this one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol


class Onlooker(Protocol):
    """Looks on while Inductor compiles one graph; what it raises breaks the user's program."""

    def looking(self) -> AbstractContextManager[None]:
        """Return a context that Inductor compiles the graph in, from its post-grad passes to its code."""

    @property
    def told(self) -> dict[str, Any]:
        """What is known by now, as fields of the graph's ``CapturedGraph``."""
