"""The clones of one test in two reports: which are the same, and which are new, gone or moved."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal

from ..base.wording import bytes_of, held_by, location
from ..record import plain

Kind = Literal["same", "reason", "moved", "new", "gone"]
NEW: Mapping[Kind, str] = {"new": "new clone", "moved": "the clone moved"}
"""What is cloned that was not before, and how the text of such a change begins."""
# Above this many pairs of lines, in a report made to be slow, clones are paired in their order.
_MOST_PAIRS = 2_500


@dataclasses.dataclass(frozen=True, slots=True)
class Clone:
    """One clone.

    Args:
        label: which candidate it is, ``<op>.<argument>``.
        nbytes: the bytes that it holds.
        reason: the name of the reason, empty where the report has none that is known.
        source: the user's line, ``"file:line"``, empty where it is not known.
        held_by: what holds it back, empty where nothing does; clones that differ in this alone are the same.
        hint: what can be done, empty where nothing is known; as ``held_by``.
        follows: the place of the clone that it is there for alone, empty where there is none.
    """

    label: str
    nbytes: int
    reason: str = ""
    source: str = ""
    held_by: str = dataclasses.field(default="", compare=False)
    hint: str = dataclasses.field(default="", compare=False)
    follows: str = ""

    @classmethod
    def of(cls, outcome: Mapping[str, Any]) -> Clone:
        """Return the clone that an outcome of a report tells of."""
        return cls(
            outcome["label"],
            outcome["nbytes"],
            outcome.get("reason") or "",
            outcome.get("source") or "",
            held_by(outcome.get("blockers") or ()),
            outcome.get("hint") or "",
            plain.named(outcome["follows"]) if outcome.get("follows") else "",
        )

    @property
    def file(self) -> str:
        """The file, as both reports name it; empty where it is not known.

        An absolute one lies outside the project, in another place on each machine: its name and its folder's
        name count.
        """
        found = location(self.source)
        name = found[0] if found else self.source
        return "/".join(PurePath(name).parts[-2:]) if PurePath(name).is_absolute() else name

    @property
    def line(self) -> int:
        """The line in that file, 0 where it is not known."""
        found = location(self.source)
        return found[1] if found else 0

    @property
    def cause(self) -> str:
        """The label of the clone that it follows from, empty where there is none."""
        return self.follows.partition(" at ")[0]

    @property
    def place(self) -> str:
        """The label and the line: ``"aten::index_put.self at m.py:3"``."""
        return f"{self.label} at {self.source}" if self.source else self.label


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What became of a clone.

    Args:
        kind: ``"same"``, on whichever line; ``"reason"``, the same for another reason; ``"moved"``, a new one
            of as many bytes as one that is gone; ``"new"``; ``"gone"``.
        old: the clone before, ``None`` where it is new.
        new: the clone now, ``None`` where it is gone.
    """

    kind: Kind
    old: Clone | None
    new: Clone | None

    @property
    def is_new(self) -> bool:
        """Whether something is cloned that was not before."""
        return self.kind in NEW

    @property
    def shown(self) -> Clone:
        """The clone now, or the one that is gone."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def text(self) -> str:
        """Where it is, its bytes and its reason; what a heading says of it, new or gone, is not repeated."""
        one = self.shown
        place, reason = one.place, _sentence(one)
        if self.kind == "moved" and self.old:
            place = f"from {self.old.place} to {place}"
        elif self.kind == "reason" and self.old:
            reason = f"{self.old.reason} → {one.reason}: {reason}"
        return f"{place}: {bytes_of(one.nbytes)}, {reason}"

    @property
    def help(self) -> str:
        """What holds a new clone back and what can be done, to be put behind its text; may be empty."""
        if not self.is_new:
            return ""
        one = self.shown
        held = f"; held back by {one.held_by}" if one.held_by else ""
        return held + (f"; hint: {one.hint}" if one.hint else "")


def told(changes: Iterable[Change], end: str = "") -> list[tuple[Change, str]]:
    """Return each change with its text, once if it occurs often, as in the layers of a model.

    What follows from a clone among them is told with that.

    Args:
        changes: of one test.
        end: stands behind the text, in front of what helps.
    """
    counts = collections.Counter(changes)
    parts = {one: one.text + _times(one.shown.nbytes, count) for one, count in counts.items()}
    causes = {change.shown.place: change for change in reversed(counts) if not change.shown.follows}
    for change, count in counts.items():
        one = change.shown
        if one.follows in causes:
            size = bytes_of(one.nbytes) + _times(one.nbytes, count)
            parts[causes[one.follows]] += f"; from it follows {one.label}: {size}"
            del parts[change]
    return [(change, text + end + change.help) for change, text in parts.items()]


def _times(nbytes: int, count: int) -> str:
    return "" if count == 1 else f", {count} times: {bytes_of(count * nbytes)} together"


def _sentence(clone: Clone) -> str:
    if clone.follows:
        return plain.consequence_of(clone.follows)
    return plain.reason_type()(clone.reason).sentence if clone.reason else "for an unknown reason"


def match(old: Iterable[Clone], new: Iterable[Clone]) -> list[Change]:
    """Return what became of each clone: each of both sides is in one change, whatever their order is.

    Clones of one label and file are the same. Of several, line, reason and bytes decide: first those that
    agree in all, then those whose lines have shifted, then those with another reason. A clone whose file is
    not known is the same as one of its label in any file.
    """
    found: list[Change] = []
    olds, news = collections.Counter(old), collections.Counter(new)

    def take(pairs: Iterable[tuple[Clone, Clone]], is_same: bool) -> None:
        for before, now in list(pairs):
            olds[before] -= 1
            news[now] -= 1
            found.append(Change(_same(before, now) if is_same else "moved", before, now))

    for key in _SAME:
        take(_pairs(olds.elements(), news.elements(), key), True)
    for key in _ANYWHERE:
        take(_pairs(_nowhere(olds), news.elements(), key), True)
        take(_pairs(olds.elements(), _nowhere(news), key), True)
    for key in _MOVED:
        take(_pairs(olds.elements(), news.elements(), key), False)
    found += [Change("gone", clone, None) for clone in olds.elements()]
    found += [Change("new", None, clone) for clone in news.elements()]
    return sorted(found, key=_order)


def _same(before: Clone, now: Clone) -> Kind:
    """Return whether the reason changed; one that a report does not know tells nothing."""
    return "reason" if before.reason and now.reason and before.reason != now.reason else "same"


def _nowhere(clones: collections.Counter[Clone]) -> list[Clone]:
    return [clone for clone in clones.elements() if not clone.file]


_Key = Callable[[Clone], object]
# What the same clone has in common before and now, the surest sign first.
_SAME: tuple[_Key, ...] = (
    lambda clone: clone,
    lambda clone: (clone.label, clone.cause, clone.reason, clone.file, clone.line),
    lambda clone: (clone.label, clone.cause, clone.reason, clone.file, clone.nbytes),
    lambda clone: (clone.label, clone.cause, clone.reason, clone.file),
    lambda clone: (clone.label, clone.file),
)
# The same, where one of them does not say its file.
_ANYWHERE: tuple[_Key, ...] = (lambda clone: (clone.label, clone.nbytes), lambda clone: clone.label)
# What a clone and the one that it replaces have in common.
_MOVED: tuple[_Key, ...] = (
    lambda clone: (clone.nbytes, clone.label),
    lambda clone: (clone.nbytes, clone.file),
    lambda clone: clone.nbytes,
)


def _pairs(olds: Iterable[Clone], news: Iterable[Clone], key: _Key) -> Iterator[tuple[Clone, Clone]]:
    """Yield the clones of the same key, each once."""
    before, now = _grouped(olds, key), _grouped(news, key)
    for name, clones in before.items():
        if name in now:
            yield from _lined_up(clones, now[name])


def _grouped(clones: Iterable[Clone], key: _Key) -> dict[object, list[Clone]]:
    """Return clones by key, each list in the order of lines whatever the order of the clones was."""
    found: dict[object, list[Clone]] = {}
    for clone in sorted(clones, key=_by_line):
        found.setdefault(key(clone), []).append(clone)
    return found


def _by_line(clone: Clone) -> tuple[object, ...]:
    return clone.line, clone.nbytes, clone.label, clone.reason, clone.source, clone.follows


def _lined_up(olds: Sequence[Clone], news: Sequence[Clone]) -> list[tuple[Clone, Clone]]:
    """Return as many pairs as there can be.

    Where one side has more, lines that have shifted together stay together: a new clone above all others
    would otherwise be taken for the first of them, and the last one for new.
    """
    found: list[tuple[Clone, Clone]] = []
    before, now = (_lines(clones) for clones in (olds, news))
    while before and now and len(olds) != len(news) and len(before) * len(now) <= _MOST_PAIRS:
        shifts = collections.Counter(b - a for a in before for b in now)
        shift = min(shifts, key=lambda by: (-shifts[by], abs(by), by))
        for line, here in before.items():
            there = now.get(line + shift, [])
            while here and there:
                found.append((here.pop(0), there.pop(0)))
        before, now = ({line: left for line, left in side.items() if left} for side in (before, now))
    left = ([clone for clones in side.values() for clone in clones] for side in (before, now))
    return [*found, *zip(*left, strict=False)]


def _lines(clones: Iterable[Clone]) -> dict[int, list[Clone]]:
    found: dict[int, list[Clone]] = {}
    for clone in clones:
        found.setdefault(clone.line, []).append(clone)
    return found


def _order(change: Change) -> tuple[object, ...]:
    """Sort the largest first, what follows from another one last."""
    sides = [_by_line(side) if side else () for side in (change.old, change.new)]
    return bool(change.shown.follows), -change.shown.nbytes, change.kind, sides
