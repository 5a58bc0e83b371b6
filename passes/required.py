"""What a user requires to be in place: its names, what is copied of it, and the error that tells so."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from ._torch import short_traceback
from .errors import ReinplaceError
from .report import Outcome, Report

if TYPE_CHECKING:
    ShortTraceback = RuntimeError
else:
    ShortTraceback = short_traceback()  # of any other error users would see the one that torch wraps it in

_MOST_CLONES = 10
_FREELY = 'our pass reads the old value before the write if it may: inductor_options(order="free")'


class RequireError(ReinplaceError, ShortTraceback):
    """``inductor_options(require=...)`` is not fulfilled, or cannot be; a ``RuntimeError``."""


class UnknownName(RequireError):
    """No operator is called as ``inductor_options(require=...)`` names it; a ``RuntimeError``.

    Args:
        names: the names, each with the end of its sentence, which may ask whether another one was meant.
        frame: as for ``NotReinplaced``.
    """

    def __init__(self, names: Mapping[str, str], frame: FrameType | None = None) -> None:
        self.names: dict[str, str] = dict(names)
        lines = [f"require names {name!r}: no operator is called so{near}" for name, near in names.items()]
        lines.append("  import what registers it before the first compilation, or leave the name out")
        super().__init__("\n".join(lines), first_useful_frame=frame)  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.names,)


class NotReinplaced(RequireError):
    """A graph copies what ``inductor_options(require=...)`` names, as it would be run; a ``RuntimeError``.

    Args:
        outcomes: the candidates of these names that are copied.
        why: why nothing was written in place, for those that have no reason of their own.
        frame: where it is raised; torch does not show its own frames above that.
    """

    def __init__(self, outcomes: Iterable[Outcome], why: str = "", frame: FrameType | None = None) -> None:
        self.outcomes: tuple[Outcome, ...] = tuple(outcomes)
        self.why = why
        count, labels = len(self.outcomes), dict.fromkeys(o.label for o in self.outcomes)
        lines = [f"{count} required candidate{'' if count == 1 else 's'} not in place: {', '.join(labels)}"]
        for outcome in self.outcomes[:_MOST_CLONES]:
            lines += [f"  {line}" for line in outcome.asked_by("production").lines(unknown=why)]
        if count > _MOST_CLONES:
            lines.append(f"  and {count - _MOST_CLONES} more")
        super().__init__("\n".join(lines), first_useful_frame=frame)  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.outcomes, self.why)


def checked(names: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the names that a user gives, each once and sorted; ``None`` where nothing is required.

    Raises:
        TypeError: they are no list of strings.
        ValueError: there is none, or an empty one.
    """
    if names is None:
        return None
    expected = "expected require to list names, as in ['mylib::kv_update.cache']"
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise TypeError(f"{expected}, got {names!r}")
    found = tuple(names)
    if wrong := [name for name in found if not isinstance(name, str)]:
        raise TypeError(f"{expected}, got {wrong[0]!r} among them")
    if not found:
        raise ValueError(f"{expected}, got none; leave require out to require nothing")
    if not all(found):
        raise ValueError(f"{expected}, got an empty name among them")
    return tuple(sorted(set(found)))


def copied(names: Sequence[str], report: Report, candidates: Sequence[Outcome], why: str) -> list[Outcome]:
    """Return what a graph copies of what is required.

    Args:
        names: what is required.
        report: what was decided.
        candidates: what could be in place in the graph as it was before.
        why: why nothing was decided; ``""`` where it was.
    """
    if why:  # what is computed on the way, or anew as a whole, is no copy when it is functional
        left = [o for o in candidates if not (o.added or o.allocates or o.fused)]
        found = [dataclasses.replace(o, reinplaced=False, moved=()) for o in left]
    else:
        found = [o for o in report.outcomes if not o.reinplaced]
    return [o for o in found if any(map(o.bears, names))]


def in_place(outcomes: Iterable[Outcome]) -> frozenset[tuple[str, str]]:
    """Return the candidates that are in place, by node and argument."""
    return frozenset((o.node, o.arg) for o in outcomes if o.reinplaced)


def freely(outcomes: Iterable[Outcome], freed: frozenset[tuple[str, str]]) -> list[Outcome]:
    """Return what is copied, with another hint where a free order would not copy it: ``freed`` are those."""
    return [dataclasses.replace(o, hint=_FREELY) if (o.node, o.arg) in freed else o for o in outcomes]
