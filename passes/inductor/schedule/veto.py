"""Fusions that would race are refused, where they are made."""

from __future__ import annotations

import logging
from typing import Any

from ..defects import defended
from . import _torch, kernel_views, unbacked
from .hook import Hook, warn
from .races import Races

log: logging.Logger = logging.getLogger(__name__)


class FusionVeto(Hook):
    """Lets no operations share a kernel that would race in it (``_pre_fusion_custom_pass``).

    Of each pair that Inductor would fuse it is asked whether that may be. What it refuses is a kernel more.

    Args:
        before: another such pass, a user's, which runs before.
    """

    __slots__ = ()

    def look(self, nodes: list[Any]) -> None:
        """Watch over the scheduler of these operations."""
        try:
            if defended("views-by-kernels"):
                kernel_views.order(nodes)
            if defended("forgotten-symbol"):
                unbacked.order(nodes)
            for part in nodes if defended("forgotten-order") else ():
                _torch.keep_order(part)
        except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
            warn(f"the order of operations is not kept on this torch: {error!r}")
        if not defended("racing-fusion"):
            return
        try:
            _watch(nodes[0])
        except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
            warn(f"fusions are refused unseen on this torch: {error!r}")
            _torch.fuse_only_if(lambda _one, _two: False, nodes[0])


def why_unwatched() -> str:
    """Return why nobody would refuse a fusion as Inductor is configured now, ``""`` where somebody would."""
    if missing := _torch.missing():
        return f"this torch has no {missing}"
    if _torch.is_compiling() and not isinstance(_torch.hook(_torch.BEFORE_FUSION), FusionVeto):
        return f"{_torch.BEFORE_FUSION} is not the one of inductor_options()"
    return ""


def _watch(node: Any) -> None:
    races = Races(node)

    def may(one: Any, two: Any) -> bool:
        try:
            buffer = races.between(one, two)
        except Exception as error:  # noqa: BLE001  (what cannot be told may race)
            warn(f"fusions are refused unseen on this torch: {error!r}")
            return False
        if buffer is not None:
            log.debug("%s and %s are not fused: they would race for %s", one, two, buffer)
        return buffer is None

    _torch.fuse_only_if(may, node)
