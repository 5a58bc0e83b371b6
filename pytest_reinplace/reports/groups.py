"""The clones of a report by line and reason: a layer of a model is called many times, by many tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from ..base.wording import bytes_of, held_by
from .clone import Clone


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """The clones that one line makes for one reason, with those that follow from them.

    Args:
        clones: at least one, the largest first; those that follow last.
    """

    clones: tuple[Clone, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """What they share."""
        return _key(self.clones[0])

    @property
    def nbytes(self) -> int:
        """The bytes that they hold together."""
        return sum(clone.nbytes for clone in self.clones)

    @property
    def labels(self) -> list[str]:
        """Their labels, that of the largest first."""
        return list(dict.fromkeys(clone.data["label"] for clone in self.clones))

    @property
    def reason(self) -> str:
        """The name of the reason."""
        return self.clones[0].data["reason"] or "unknown"

    @property
    def sentence(self) -> str:
        """The reason as a sentence, and what follows."""
        first = self.clones[0]
        followers = [] if first.follows else [clone for clone in self.clones if clone.follows]
        if not followers:
            return first.sentence
        labels = ", ".join(dict.fromkeys(clone.data["label"] for clone in followers))
        size = bytes_of(sum(clone.nbytes for clone in followers))
        return f"{first.sentence}; from it follows {labels}, {size}"

    @property
    def hint(self) -> str:
        """What can be done; empty where nothing is known."""
        return next((clone.data["hint"] for clone in self.clones if clone.data["hint"]), "")

    @property
    def where(self) -> str:
        """The user's line, ``"file:line"``; where none is known, the node."""
        return self.clones[0].source or self.clones[0].data["node"]

    @property
    def tests(self) -> list[str]:
        """The ids of the tests that make them, that of the largest first."""
        return list(dict.fromkeys(clone.test for clone in self.clones))

    @property
    def blockers(self) -> str:
        """What holds them back, each operator of a line once; empty where nothing does."""
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for clone in self.clones:
            for blocker in clone.data["blockers"]:
                found.setdefault((blocker["op"], blocker["source"] or blocker["node"]), blocker)
        return held_by(list(found.values()))


def groups_of(clones: Iterable[Clone]) -> list[Group]:
    """Return groups of clones, those that hold most bytes together first.

    A clone that follows from another one is in the group of that.

    Args:
        clones: the largest first, as ``clones_of`` returns them.
    """
    found: dict[tuple[object, ...], list[Clone]] = {}
    every = list(clones)
    causes = {_place(clone, clone.data): clone for clone in every if not clone.follows}
    for clone in sorted(every, key=lambda clone: bool(clone.follows)):
        cause = causes.get(_place(clone, clone.data["follows"])) if clone.follows else None
        found.setdefault(_key(cause or clone), []).append(clone)
    return sorted((Group(tuple(made)) for made in found.values()), key=lambda group: -group.nbytes)


def _key(clone: Clone) -> tuple[object, ...]:
    place = clone.source or (clone.test, clone.data["label"], clone.data["node"])
    return place, clone.data["reason"], clone.follows


def _place(clone: Clone, candidate: Mapping[str, Any]) -> tuple[object, ...]:
    """Return which candidate of a clone's graph is meant."""
    return clone.test, clone.graph, clone.data["graph"], candidate["node"], candidate["label"]
