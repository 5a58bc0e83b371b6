"""The copies that lowering adds, as a report tells them: those of one line and cause together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..base.fit import TIMES
from ..base.lowering_copy import LoweringCopy
from ..base.wording import bytes_of, plural

HEADS = ("copy", "bytes", "count", "cause", "where", "why", "test")


@dataclasses.dataclass(frozen=True, slots=True)
class Copied:
    """The copies that are made for one argument at one line, for one cause.

    Args:
        copies: at least one.
        graphs: the graphs that they are in: the id of the test, and the position in it.
    """

    copies: tuple[LoweringCopy, ...]
    graphs: tuple[tuple[str, int], ...]

    @property
    def tests(self) -> tuple[str, ...]:
        """The ids of the tests in whose graphs they are."""
        return tuple(dict.fromkeys(test for test, _ in self.graphs))

    @property
    def nbytes(self) -> int:
        """The bytes that they copy together."""
        return sum(copy.nbytes for copy in self.copies)

    @property
    def where(self) -> str:
        """The user's line; where none is known, the node, or the buffer."""
        first = self.copies[0]
        return first.source or first.node or first.buffer

    @property
    def line(self) -> str:
        """They as one line."""
        first = self.copies[0]
        count = f", {len(self.copies)}{TIMES}" if len(self.copies) > 1 else ""
        hint = f"; hint: {first.hint}" if first.hint else ""
        what = f"{first.label} at {self.where}: {bytes_of(self.nbytes)}{count}"
        return f"{what}, {first.cause}: {first.sentence}{hint}"


def copied_in(report: Mapping[str, Any]) -> list[Copied]:
    """Return the copies that lowering adds in a document, those of most bytes first."""
    found: dict[tuple[object, ...], list[tuple[LoweringCopy, tuple[str, int]]]] = {}
    for test, data in sorted(report["tests"].items()):
        for position, graph in enumerate(data["graphs"]):
            for one in graph.get("copies") or ():
                copy = LoweringCopy.from_dict(one)
                if not copy.meant:
                    key = copy.label, copy.cause, copy.source or (test, copy.node)
                    found.setdefault(key, []).append((copy, (test, position)))
    groups = [
        Copied(tuple(copy for copy, _ in made), tuple(dict.fromkeys(graph for _, graph in made)))
        for made in found.values()
    ]
    return sorted(groups, key=lambda group: -group.nbytes)


def title(groups: list[Copied]) -> str:
    """Return the heading: how many copies there are, and how large they are."""
    count = plural(sum(len(group.copies) for group in groups), "copy")
    tests = plural(len({test for group in groups for test in group.tests}), "test")
    size = bytes_of(sum(group.nbytes for group in groups))
    return f"lowering adds {count}: {size} in {tests}"
