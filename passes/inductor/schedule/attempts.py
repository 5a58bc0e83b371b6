"""A graph is lowered until its schedule is right and the cheapest of a few: which attempt this is.

What Inductor makes of a graph is known once it has been made. So where it matters a graph is lowered again,
from a copy: functional, where its schedule was wrong or Inductor failed; in another way, where it is not
clear which one is cheaper. Mostly an attempt ends when its schedule is looked at, before any code is written.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from torch.fx import GraphModule

from ...graph.copy import copied
from ...report import Outcome
from ...required import NotReinplaced, RequireError
from . import _torch
from .cost import Cost
from .hook import log, warn

Change = Literal["speed", "stores early"]
"""What may be done otherwise than at first: ``policy="speed"``, or early stores into inputs."""


class Tried(NamedTuple):
    """What was done otherwise in an attempt, and what it costs."""

    changes: tuple[Change, ...]
    cost: Cost

    def again(self) -> Attempt:
        """Return an attempt that does the same, and is kept."""
        return Attempt(self.changes, is_last=True)


@dataclasses.dataclass(slots=True)
class Attempt:
    """One lowering of a graph.

    Args:
        changes: what is done otherwise in it than in the first one.
        is_last: whether it is made whatever comes of it.
        cheapest: the cheapest of the attempts before.
        untried: further changes, each of which might be cheaper.
        graphs: how many graphs were reinplaced in it: subgraphs have schedules of their own.
        writes: whether anything was written in place in one of them, by a candidate or otherwise.
        by_peak: whether the way that holds less is the cheaper one, whatever it moves (``policy="peak"``).
        why: why nothing is reinplaced, where nothing is.
        settled: what is to be called once this attempt is the one that counts.
        copied: what must be in place and is copied in it, and why, where it is for no reason of its own.
    """

    changes: tuple[Change, ...] = ()
    is_last: bool = False
    cheapest: Tried | None = None
    untried: tuple[Change, ...] = ()
    graphs: int = 0
    writes: bool = False
    by_peak: bool = False
    why: str = ""
    settled: list[Callable[[], None]] = dataclasses.field(default_factory=list)
    copied: list[tuple[Outcome, str]] = dataclasses.field(default_factory=list)

    def reinplaced(self, *, writes: bool) -> None:
        """Note what became of a graph in this attempt."""
        self.graphs += 1
        self.writes |= writes
        self.untried = self.untried if self.graphs == 1 else ()

    def might(self, change: Change) -> None:
        """Note that a change might be cheaper for the graph that was reinplaced last."""
        if self.graphs == 1 and self.cheapest is None:
            self.untried += (change,)

    def judge(self) -> None:
        """Raise ``NotReinplaced`` if this attempt copies what must be in place."""
        if self.copied:
            why = "; ".join(dict.fromkeys(why for _, why in self.copied))
            raise NotReinplaced([o for o, _ in self.copied], why, inspect.currentframe())

    def settle(self) -> None:
        """Do what waited for this attempt to be the one that counts."""
        waiting, self.settled = self.settled, []
        for callback in waiting:
            callback()

    def following(self, cost: Cost | None) -> Attempt | None:
        """Return the attempt to be made in the place of this one, ``None`` where this one is kept.

        Args:
            cost: what this one costs; ``None`` where that cannot be said.
        """
        best = self.cheapest
        if cost is not None and (best is None or self._is_cheaper(cost, best.cost)):
            best = Tried(self.changes, cost)
        if best is None:
            return None
        left = self.untried if cost is not None else ()
        if left[:1] == ("stores early",) and not (self.by_peak or best.cost.is_mostly_waiting):
            left = left[1:]
        if left:
            return Attempt((*best.changes, left[0]), cheapest=best, untried=left[1:])
        return None if best.changes == self.changes else best.again()

    def _is_cheaper(self, cost: Cost, best: Cost) -> bool:
        if self.by_peak or self.changes[-1] == "speed":
            return not cost.is_above(best, by_peak=self.by_peak)
        return best.is_above(cost)


class Retry(Exception):
    """The graph is to be lowered once more.

    Args:
        attempt: the next one.
        why: for the log.
    """

    def __init__(self, attempt: Attempt, why: str) -> None:
        super().__init__(why)
        self.attempt = attempt


_attempt: contextvars.ContextVar[Attempt | None] = contextvars.ContextVar("attempt", default=None)


def now() -> Attempt:
    """Return the attempt that is being made; one that nobody asks for where a graph is lowered only once."""
    return _attempt.get() or Attempt(is_last=True)


def why_functional() -> str:
    """Return why nothing is reinplaced in this attempt, ``""`` where something may be."""
    return now().why


def must_not_copy(copied: list[Outcome], why: str) -> None:
    """Let this attempt fail once it is made, if it is the one that counts, for what it copies and must not.

    Raises:
        NotReinplaced: a graph is lowered once, whatever comes of it.
    """
    attempt, found = _attempt.get(), [(outcome, why) for outcome in copied]
    if attempt is None:
        Attempt(copied=found).judge()
    else:
        attempt.copied += found


def once_settled(callback: Callable[[], None]) -> None:
    """Call something if this attempt is the one that counts, as soon as that is known."""
    attempt = _attempt.get()
    if attempt is None:
        callback()
    else:
        attempt.settled.append(callback)


def begin(is_wanted: Callable[[], bool]) -> None:
    """See to it that graphs are lowered in attempts from now on, where that is wanted."""

    def compiled(gm: GraphModule, compile_one: Callable[[GraphModule], Any]) -> Any:
        return lowered(gm, compile_one) if is_wanted() else compile_one(gm)

    if not _torch.compiling_with(compiled, let_out=RequireError):
        warn("a wrong schedule is only warned of on this torch: it has no fx_codegen_and_compile")


def lowered(gm: GraphModule, compile_one: Callable[[GraphModule], Any]) -> Any:
    """Compile a graph in as many attempts as it takes.

    Whatever Inductor raises may be for what was written in place; if it is not, it is raised once more.
    """
    attempt, failed = Attempt(), None
    while True:
        spare = None if attempt.why else _kept(gm)
        attempt.is_last |= spare is None
        try:
            with _made(attempt):
                result = compile_one(gm)
        except Retry as retry:
            log.debug("lowered once more: %s", retry)
            assert spare is not None
            gm, attempt = spare, retry.attempt
            continue
        except BaseException as error:
            is_meant = isinstance(error, RequireError) or not isinstance(error, Exception)
            if spare is None or not attempt.writes or is_meant:
                (failed or attempt).settle()
                raise
            log.warning("compiled once more without writes in place, Inductor failed: %r", error)
            why = f"Inductor failed at what was written in place: {error!r}"
            gm, attempt, failed = spare, Attempt(is_last=True, why=why), attempt
            continue
        attempt.settle()
        attempt.judge()
        return result


@contextlib.contextmanager
def _made(attempt: Attempt) -> Iterator[None]:
    token = _attempt.set(attempt)
    try:
        yield
    finally:
        _attempt.reset(token)


def _kept(gm: GraphModule) -> GraphModule | None:
    """Return a copy for the next attempt, ``None`` where none can be made."""
    try:
        copy = copied(gm)
    except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
        warn(f"a wrong schedule is only warned of, the graph cannot be copied: {error!r}")
        return None
    copy.meta.update(gm.meta)
    return copy
