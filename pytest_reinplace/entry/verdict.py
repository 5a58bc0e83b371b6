"""What a run of a corpus entry showed, judged and worded."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

from ..base import wording
from ..copies import allowed
from .entry import Entry, Preset
from .held import Held

if TYPE_CHECKING:
    from ..capture.captured import CapturedGraph
    from ..passes import Outcome


@dataclasses.dataclass(frozen=True, slots=True)
class EntryVerdict:
    """What a run of an entry showed.

    Args:
        entry: the entry.
        preset: its preset that ran.
        pass_name: the pass under test.
        backend: ``"graph"`` or ``"inductor"``.
        graphs: what was compiled, with a report each.
        differences: from the eager run, most telling first.
        held: what a call of it holds.
    """

    entry: Entry
    preset: Preset
    pass_name: str
    backend: str
    graphs: tuple[CapturedGraph, ...]
    differences: tuple[str, ...]
    held: Held = dataclasses.field(default_factory=Held)

    @property
    def expected(self) -> tuple[str, ...] | None:
        """The clone list that the entry gives for the pass, ``None`` when it gives none."""
        return self.preset.clones.get(self.pass_name)

    @property
    def clones(self) -> list[str]:
        """The clone list that came."""
        return [outcome.label for outcome in self._cloned()]

    def _cloned(self) -> list[Outcome]:
        return [o for graph in self.graphs for o in graph.report.outcomes if not o.reinplaced]

    @property
    def differs_in_clones_only(self) -> bool:
        """Whether nothing is wrong but that other clones came than the entry lists."""
        return bool(self._in_clones()) and not self._faults()

    def problems(self) -> list[str]:
        """Return what is wrong, one line each, wrong values first; empty when the entry passed."""
        return [*self._faults(), *([] if self._unexercised() else self._in_clones())]

    def _in_copies(self) -> allowed.Told:
        """Return in how far lowering copies something else than the entry lists, where it was lowered."""
        expected = self.preset.copies.get(self.pass_name)
        if expected is None or self.backend != "inductor":
            return allowed.Told()
        if problem := allowed.unknown(self.graphs):
            return allowed.Told((problem,))
        return allowed.difference(self.graphs, expected)

    def _in_memory(self) -> allowed.Told:
        """Return in how far a call holds more times its lower bound than the entry allows, as for copies."""
        most = self.preset.peak_over_bound(self.pass_name)
        if most is None or self.backend != "inductor":
            return allowed.Told()
        return self.held.excess(most, self.entry.where)

    def _faults(self) -> list[str]:
        """Return what is wrong whatever clones the entry lists."""
        found = [*self.differences]
        found += [
            f"graph {graph.id} could not be judged: {graph.problem}" for graph in self.graphs if graph.problem
        ]
        found += [graph.suspicion for graph in self.graphs if graph.suspicion]
        return [*found, *self._unexercised(), *self._in_copies().problems, *self._in_memory().problems]

    def _unexercised(self) -> list[str]:
        if not self.graphs:
            return ["no graph was compiled, so the pass was not exercised"]
        if not any(graph.offered or graph.report.outcomes for graph in self.graphs):
            return ["no compiled graph holds a candidate, so the pass was not exercised"]
        return []

    def _in_clones(self) -> list[str]:
        if self.expected is None:
            return []
        text = wording.difference(Counter(self.expected), Counter(self.clones))
        return [text] if text else []

    def __str__(self) -> str:
        """Return the failure text, as that of a test: what differs, then why, then both lists."""
        first, *rest = self.problems() or ("as expected",)
        origin = f"pass {self.pass_name}, backend {self.backend}"
        lines = [f"{self.entry.name} on {self.preset.device}: {first} ({origin})", *rest]
        if self.expected is not None and (text := self._in_clones()) and text[0] in (first, *rest):
            unexpected = Counter(self.clones) - Counter(self.expected)
            lines += wording.explained(o for o in self._cloned() if o.label in unexpected)
            lines += [
                f"expected {list(self.expected)}, at clones.{self.pass_name} in {self.entry.where}",
                f"got      {self.clones}",
            ]
        lines += [*self._in_copies().details, *self._in_memory().details]
        return "\n".join(lines)
