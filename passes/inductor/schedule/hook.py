"""What our passes over scheduled operations have in common: a pass of the user's may run before each."""

from __future__ import annotations

import abc
import dataclasses
import functools
import logging
import secrets
from typing import TYPE_CHECKING, Any

from ..identity import state
from . import _torch

log: logging.Logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    SchedulerPass = object
else:
    SchedulerPass = _torch.scheduler_pass()


@dataclasses.dataclass(frozen=True, slots=True)
class Hook(SchedulerPass):
    """A pass over the operations that Inductor has scheduled.

    Args:
        before: another such pass, a user's, which runs before.
    """

    before: Any = None

    def __call__(self, nodes: list[Any]) -> list[Any]:
        """Look at the operations, as Inductor calls it; returns what the pass before has made of them."""
        nodes = nodes if self.before is None else self.before(nodes)
        if nodes:
            self.look(nodes)
        return nodes

    @abc.abstractmethod
    def look(self, nodes: list[Any]) -> None:
        """Do what the pass is for."""

    def uuid(self) -> Any:
        """Identify the pass by its source and that of the pass before it."""
        own = ("pytest-reinplace", type(self).__name__)
        if self.before is None:
            return (*own, *state())
        # One that cannot be told is no other's: nothing that was kept is found.
        before = self.before.uuid() if hasattr(self.before, "uuid") else None
        return (*own, before or secrets.token_hex(), *state())


def behind(kind: type[Hook], before: Any) -> Hook:
    """Return a pass of ours behind another one; that one, where it is such a pass itself."""
    return before if isinstance(before, kind) else kind(before)


@functools.cache
def warn(message: str) -> None:
    """Log a warning once."""
    log.warning(message)
