"""A graph is lowered until its schedule is right and the cheaper one of two: which attempt this is.

What Inductor makes of a graph is known once it has been made. So where it matters a graph is lowered again,
from a copy: functional, where its schedule was wrong or Inductor failed; by the other policy, where it is not
clear which one is cheaper. Mostly an attempt ends when its schedule is looked at, before any code is written.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Literal

from torch.fx import GraphModule

from ...graph.copy import copied
from ...report import Outcome
from ...required import NotReinplaced, RequireError
from . import _torch
from .cost import Cost
from .hook import log, warn

Way = Literal["as asked", "speed", "functional"]


@dataclasses.dataclass(slots=True)
class Attempt:
    """One lowering of a graph.

    Args:
        way: how it is reinplaced: as the user asked, by ``policy="speed"``, or not at all.
        is_last: whether it is made whatever comes of it.
        other: the cost of the other way, where that was tried before.
        graphs: how many graphs were reinplaced in it: subgraphs have schedules of their own.
        writes: whether anything was written in place in one of them.
        is_open: whether the other way might be cheaper.
        by_peak: whether the way that holds less is the cheaper one, whatever it moves (``policy="peak"``).
        why: why nothing is reinplaced, where it is not.
        settled: what is to be called once this attempt is the one that counts.
        copied: what must be in place and is copied in it, and why, where it is for no reason of its own.
    """

    way: Way = "as asked"
    is_last: bool = False
    other: Cost | None = None
    graphs: int = 0
    writes: bool = False
    is_open: bool = False
    by_peak: bool = False
    why: str = ""
    settled: list[Callable[[], None]] = dataclasses.field(default_factory=list)
    copied: list[tuple[Outcome, str]] = dataclasses.field(default_factory=list)

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


def current() -> Attempt | None:
    """Return the attempt that is being made; ``None`` where a graph is lowered once, whatever comes of it."""
    return _attempt.get()


def way() -> Way:
    """Return how the graph is reinplaced in this attempt."""
    return (_attempt.get() or Attempt()).way


def why_functional() -> str:
    """Return why nothing is reinplaced in this attempt, ``""`` where something may be."""
    return (_attempt.get() or Attempt()).why


def reinplaced(*, writes: bool, is_open: bool) -> None:
    """Note what became of a graph in this attempt, and whether the other way might be cheaper."""
    attempt = _attempt.get()
    if attempt is not None:
        attempt.graphs += 1
        attempt.writes |= writes
        attempt.is_open = is_open and attempt.graphs == 1


def compared(*, by_peak: bool) -> None:
    """Note how the two ways of a graph are compared."""
    attempt = _attempt.get()
    if attempt is not None:
        attempt.by_peak = by_peak


def wrote(something: bool) -> None:
    """Note whether something was written in place in this attempt that no candidate is."""
    attempt = _attempt.get()
    if attempt is not None:
        attempt.writes |= something


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
        spare = None if attempt.way == "functional" else _kept(gm)
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
            gm, attempt, failed = spare, Attempt("functional", is_last=True, why=why), attempt
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
