"""Which applications broke the contract: each by itself, or by halving the way to the guilty one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from torch.fx import GraphModule

from ..errors import ReinplaceError
from ..verify.contract import check
from ..verify.finding import Finding
from .ledger import Ledger


def checked(
    ledger: Ledger, inputs: Sequence[Any], *, each: bool, regenerated: frozenset[int] = frozenset()
) -> Ledger:
    """Return a ledger with a finding for each application.

    Args:
        ledger: what was recorded.
        inputs: real tensors, one value for each placeholder.
        each: whether each application is held against the graph just before it, by a tolerance of its own:
            none where it only takes arithmetic away. Otherwise a stretch whose ends do the same is taken to
            be right all the way, and one whose ends differ is halved: each fault costs as many checks as the
            number of applications has binary digits.
        regenerated: the outputs that the caller makes anew, as ``verify.check`` takes them.
    """
    search = _Search(ledger, inputs, regenerated, each=each)
    count = len(ledger.applications)
    stretches = [(i, i + 1) for i in range(count)] if each else [(0, count)]
    findings: dict[int, Finding] = {}
    for start, end in stretches:
        findings.update(search.stretch(start, end))
    notes = [dataclasses.replace(a, finding=findings.get(a.number)) for a in ledger.applications]
    return ledger.with_findings(notes)


class _Search:
    def __init__(
        self, ledger: Ledger, inputs: Sequence[Any], regenerated: frozenset[int], *, each: bool
    ) -> None:
        self._ledger, self._inputs, self._regenerated, self._each = ledger, inputs, regenerated, each

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

    def _compared(self, start: int, end: int) -> Finding:
        try:
            before, after = self._at(start), self._at(end)
        except ReinplaceError as error:
            return Finding.unchecked(str(error))
        return check(
            before,
            after,
            self._inputs,
            regenerated=self._regenerated,
            is_one_rule=self._each and end - start == 1,
        )

    def _at(self, point: int) -> GraphModule:
        ledger = self._ledger
        return ledger.graph_before(point) if point == 0 else ledger.graph_after(point - 1)
