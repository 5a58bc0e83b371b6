"""Which applications broke the contract: each by itself, or by halving the way to the guilty one."""

from __future__ import annotations

import dataclasses
import functools
import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch.fx import GraphModule

from ..errors import ReinplaceError
from ..verify.contract import check
from ..verify.finding import Finding
from .ledger import Ledger

# Halving finds several faults among thousands of applications with so many comparisons.
_FEWEST = 64
_KEPT = 8  # an end of one stretch is one of the next, or of its halves
_FIRST = {"different": 0, "same": 1, "not-checked": 2}


def checked(
    ledger: Ledger,
    inputs: Sequence[Any],
    *,
    each: bool,
    regenerated: frozenset[int] = frozenset(),
    most: int | None = None,
) -> Ledger:
    """Return a ledger with a finding for each application.

    Args:
        ledger: what was recorded.
        inputs: real tensors, one value for each placeholder.
        each: whether each application is held against the graph just before it, by a tolerance of its own.
            Otherwise a stretch whose ends do the same is taken to be right all the way, and one whose ends
            differ is halved: each fault costs as many checks as the number of applications has binary digits.
        regenerated: the outputs that the caller makes anew, as ``verify.check`` takes them.
        most: how many nodes may be run to check each one. Where that is too few, a stretch whose ends do the
            same **bit by bit** is taken to be right, and any other is halved; the comparisons are limited,
            so that the time grows with the graph and not with its square. What was compared only together
            with others is not checked, and says so.
    """
    search = _Search(ledger, inputs, regenerated)
    count, size = len(ledger.applications), max(1, ledger.size)
    if each and most is not None and 2 * size * count > most:
        findings = search.halved(max(_FEWEST, most // (2 * size)))
    else:
        stretches = [(i, i + 1) for i in range(count)] if each else [(0, count)]
        findings = dict(found for stretch in stretches for found in search.stretch(*stretch))
    notes = [dataclasses.replace(a, finding=findings.get(a.number)) for a in ledger.applications]
    return ledger.with_findings(notes)


def unchecked(ledger: Ledger, reason: str) -> Ledger:
    """Return a ledger in which each application says why it was not checked."""
    finding = Finding.unchecked(reason)
    return ledger.with_findings(dataclasses.replace(a, finding=finding) for a in ledger.applications)


class _Search:
    def __init__(self, ledger: Ledger, inputs: Sequence[Any], regenerated: frozenset[int]) -> None:
        self._ledger, self._inputs, self._regenerated = ledger, inputs, regenerated
        self._at = functools.lru_cache(_KEPT)(self._graph_at)

    def stretch(self, start: int, end: int) -> Iterator[tuple[int, Finding]]:
        """Yield the findings of the applications from ``start`` up to ``end``."""
        if start >= end:
            return
        found = self._compared(start, end)
        if end - start == 1 or found.status == "same":
            yield from ((number, found) for number in range(start, end))
            return
        middle = (start + end) // 2
        yield from self.stretch(start, middle)
        yield from self.stretch(middle, end)

    def halved(self, room: int) -> Mapping[int, Finding]:
        """Return the findings of so many comparisons: of what is wrong first, then of short stretches."""
        findings: dict[int, Finding] = {}
        open_: list[tuple[int, int, int, int, Finding]] = []

        def look(start: int, end: int) -> None:
            found = self._compared(start, end)
            if end - start == 1 or (found.status == "same" and not found.kind):
                findings.update(dict.fromkeys(range(start, end), found))
            else:
                heapq.heappush(open_, (_FIRST[found.status], end - start, start, end, found))

        look(0, len(self._ledger.applications))
        left = room - 1
        while open_ and left >= 2:
            _, _, start, end, _ = heapq.heappop(open_)
            middle = (start + end) // 2
            look(start, middle)
            look(middle, end)
            left -= 2
        for *_, start, end, found in open_:
            findings.update(_together(start, end, found))
        return findings

    def _compared(self, start: int, end: int) -> Finding:
        try:
            before, after = self._at(start), self._at(end)
        except ReinplaceError as error:
            return Finding.unchecked(str(error))
        return check(before, after, self._inputs, regenerated=self._regenerated)

    def _graph_at(self, point: int) -> GraphModule:
        ledger = self._ledger
        return ledger.graph_before(point) if point == 0 else ledger.graph_after(point - 1)


def _together(start: int, end: int, found: Finding) -> Iterator[tuple[int, Finding]]:
    """Yield what is said of a stretch that was compared as a whole only."""
    others = f"it was compared only together with {end - start - 1} others"
    text = {"same": f"{others}, which round in another way", "not-checked": found.text}.get(
        found.status, others
    )
    yield from ((number, Finding.unchecked(text)) for number in range(start, end))
    if found.is_different:
        told = f"{found.text} (one of the applications {start} to {end - 1})"
        yield start, dataclasses.replace(found, text=told)
