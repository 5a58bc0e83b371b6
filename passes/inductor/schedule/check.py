"""The schedule is checked when it is made: where it is wrong, the graph is compiled once more, functional.

``FusionVeto`` and the mends before lowering leave nothing to be found here, as far as is known.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import logging
from collections.abc import Callable, Iterator
from typing import Any

from torch.fx import GraphModule

from ...graph.copy import copied
from . import _torch
from .hook import Hook, warn
from .late_reads import late_reads
from .races import Races

log: logging.Logger = logging.getLogger(__name__)
Watcher = Callable[[str], None]


class ScheduleError(Exception):
    """What was scheduled does not compute the graph."""


@dataclasses.dataclass(slots=True)
class _Attempt:
    is_functional: bool = False


_attempt: contextvars.ContextVar[_Attempt | None] = contextvars.ContextVar("attempt", default=None)
_watchers: contextvars.ContextVar[tuple[Watcher, ...]] = contextvars.ContextVar("watchers", default=())


class ScheduleCheck(Hook):
    """Checks that what was fused does not race, and that all is read when it should be.

    It runs once fusion is over (``_post_fusion_custom_pass``).

    Args:
        before: another such pass, a user's, which runs before.
    """

    __slots__ = ()

    def look(self, nodes: list[Any]) -> None:
        """Check these operations.

        Raises:
            ScheduleError: they compute something else, and the graph can be compiled once more.
        """
        try:
            found = problem(nodes)
        except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
            warn(f"schedules are not checked on this torch: {error!r}")
            return
        if not found:
            return
        for watcher in _watchers.get():
            watcher(found)
        attempt = _attempt.get()
        if attempt is not None and not attempt.is_functional:
            raise ScheduleError(found)
        log.warning("Inductor's schedule is wrong, and nothing can be done: %s", found)


def problem(nodes: list[Any]) -> str:
    """Return what is wrong with a schedule, ``""`` where nothing is."""
    races = Races(nodes[0].scheduler)
    for node in nodes:
        buffer = races.within(node)
        if buffer is not None:
            return f"the operations {', '.join(p.get_name() for p in node.get_nodes())} race for {buffer}"
    return next(map(str, late_reads(_torch.lowered(), nodes, races)), "")


@contextlib.contextmanager
def watching_schedules(watcher: Watcher) -> Iterator[None]:
    """Call ``watcher`` with what is wrong with a schedule, for each that is made inside and is wrong."""
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


def is_functional() -> bool:
    """Return whether the graph that is compiled is to be left functional: its schedule was wrong before."""
    attempt = _attempt.get()
    return attempt is not None and attempt.is_functional


def begin() -> None:
    """See to it that graphs whose schedule is wrong are compiled once more, from now on."""
    if not _torch.compiling_with(_compiled):
        warn("a wrong schedule is only warned of on this torch: it has no fx_codegen_and_compile")


def _compiled(gm: GraphModule, compile_one: Callable[[GraphModule], Any]) -> Any:
    """Compile a graph as it is or, where its schedule is wrong, a copy that stays functional."""
    copy = _kept(gm)
    if copy is None:
        return compile_one(gm)
    attempt = _Attempt()
    token = _attempt.set(attempt)
    try:
        try:
            return compile_one(gm)
        except ScheduleError as error:
            log.warning("compiled once more without writes in place, Inductor's schedule is wrong: %s", error)
        attempt.is_functional = True
        return compile_one(copy)
    finally:
        _attempt.reset(token)


def _kept(gm: GraphModule) -> GraphModule | None:
    """Return a copy for a second attempt, ``None`` where no schedule is checked or none can be made."""
    if not isinstance(_torch.hook(_torch.AFTER_FUSION), ScheduleCheck):
        return None
    try:
        copy = copied(gm)
    except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
        warn(f"a wrong schedule is only warned of, the graph cannot be copied: {error!r}")
        return None
    copy.meta.update(gm.meta)
    return copy
