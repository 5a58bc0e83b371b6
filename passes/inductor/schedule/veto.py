"""Fusions that would race are refused, where they are made."""

from __future__ import annotations

import dataclasses
import functools
import logging
import secrets
from typing import TYPE_CHECKING, Any

from ..defects import defended
from ..identity import state
from . import _torch
from .races import Races

log: logging.Logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    SchedulerPass = Any
else:
    SchedulerPass = _torch.scheduler_pass()


@dataclasses.dataclass(frozen=True, slots=True)
class FusionVeto(SchedulerPass):
    """Lets no operations share a kernel that would race in it (``_pre_fusion_custom_pass``).

    Of each pair that Inductor would fuse it is asked whether that may be. What it refuses is a kernel more.

    Args:
        before: another such pass, a user's, which runs before.
    """

    before: Any = None

    def __call__(self, nodes: list[Any]) -> list[Any]:
        """Watch over the scheduler of these operations, as Inductor calls it; returns the operations."""
        nodes = nodes if self.before is None else self.before(nodes)
        if nodes and defended("racing-fusion"):
            try:
                _watch(nodes[0].scheduler)
            except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
                warn(f"fusions are not checked on this torch: {error!r}")
        return nodes

    def uuid(self) -> Any:
        """Identify the pass by its source and that of the pass before it."""
        if self.before is None:
            return ("pytest-reinplace", "veto", *state())
        # One that cannot be told is no other's: nothing that was kept is found.
        before = self.before.uuid() if hasattr(self.before, "uuid") else None
        return ("pytest-reinplace", "veto", before or secrets.token_hex(), *state())


def fusion_veto() -> FusionVeto:
    """Return the pass that refuses fusions, after what Inductor is configured to run before it fuses."""
    before = _torch.before_fusion()
    return before if isinstance(before, FusionVeto) else FusionVeto(before)


def why_unwatched() -> str:
    """Return why nobody would refuse a fusion as Inductor is configured now, ``""`` where somebody would."""
    if missing := _torch.missing():
        return f"this torch has no {missing}"
    if _torch.is_compiling() and not isinstance(_torch.before_fusion(), FusionVeto):
        return f"{_torch.BEFORE_FUSION} is not the one of inductor_options()"
    return ""


def _watch(scheduler: Any) -> None:
    races, inductors = Races(scheduler), scheduler.can_fuse

    @functools.wraps(inductors)
    def can_fuse(one: Any, two: Any, *args: Any, **kwargs: Any) -> bool:
        if not inductors(one, two, *args, **kwargs):
            return False
        try:
            buffer = races.between(one, two)
        except Exception as error:  # noqa: BLE001  (what cannot be told may race)
            warn(f"fusions are refused unseen on this torch: {error!r}")
            return False
        if buffer is not None:
            log.debug("%s and %s are not fused: they would race for %s", one, two, buffer)
        return buffer is None

    scheduler.can_fuse = can_fuse


@functools.cache
def warn(message: str) -> None:
    """Log a warning once."""
    log.warning(message)
