"""The schedule is checked when it is made: where it is wrong, the graph is lowered once more, functional.

``FusionVeto`` and the mends before lowering leave nothing to be found here, as far as is known.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

from . import _torch, results
from .attempts import Attempt, Retry, now
from .cost import cost_of
from .hook import Hook, log, warn
from .late_reads import late_reads
from .races import Races

Watcher = Callable[[str], None]


_watchers: contextvars.ContextVar[tuple[Watcher, ...]] = contextvars.ContextVar("watchers", default=())


class ScheduleCheck(Hook):
    """Checks that what was fused does not race, and that all is read when it should be.

    It runs once fusion is over (``_post_fusion_custom_pass``). In a schedule that stays, what calls return of
    what they wrote gets no name (``results``).

    Args:
        before: another such pass, a user's, which runs before.
    """

    __slots__ = ()

    def look(self, nodes: list[Any]) -> None:
        """Check these operations.

        Raises:
            Retry: they compute something else, or might cost less, and the graph can be lowered once more.
        """
        found, attempt = _asked(problem, nodes, "schedules are not checked") or "", now()
        if found and attempt.cheapest is not None:
            raise Retry(attempt.cheapest.again(), found)  # which was right
        for watcher in _watchers.get() if found else ():
            watcher(found)
        if attempt.is_last:
            if found:
                log.warning("Inductor's schedule is wrong, and nothing can be done: %s", found)
        elif found:
            log.warning("compiled once more without writes in place, Inductor's schedule is wrong: %s", found)
            why = f"Inductor's schedule is wrong: {found}"
            raise Retry(Attempt(is_last=True, why=why), found)
        else:
            _compare(attempt, nodes)
        _asked(results.let_go, nodes, "what calls wrote in place is held for longer")


def _compare(attempt: Attempt, nodes: list[Any]) -> None:
    """Ask for another way where it might be cheaper, or is."""
    if not attempt.untried and attempt.cheapest is None:
        return
    cost = _asked(cost_of, nodes, "schedules are not compared")
    following = attempt.following(cost)
    if following is not None:
        raise Retry(following, f"{cost}; next with {following.changes}, cheapest {following.cheapest}")


def _asked(question: Callable[[list[Any]], Any], nodes: list[Any], without: str) -> Any:
    """Return the answer, or say what it is like without one; a compile never fails because of us."""
    try:
        return question(nodes)
    except Exception as error:  # noqa: BLE001
        warn(f"{without} on this torch: {error!r}")
        return None


def problem(nodes: list[Any]) -> str:
    """Return what is wrong with a schedule, ``""`` where nothing is."""
    races = Races(nodes[0])
    for node in nodes:
        buffer = races.within(node)
        if buffer is not None:
            return f"the operations {', '.join(map(_torch.name, _torch.operations(node)))} race for {buffer}"
    return next(map(str, late_reads(_torch.lowered(), nodes, races)), "")


@contextlib.contextmanager
def watching_schedules(watcher: Watcher) -> Iterator[None]:
    """Call ``watcher`` with what is wrong with a schedule, for each that is made inside and is wrong."""
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


def is_wanted() -> bool:
    """Return whether schedules are checked, as Inductor is configured now."""
    return isinstance(_torch.hook(_torch.AFTER_FUSION), ScheduleCheck)
