"""Several passes held against the oracle, on the same random graphs."""

from __future__ import annotations

import dataclasses

from ..reason import Reason
from ..reinplacing.run import analyze
from ..strategies import random_graph
from .tally import Tally
from .verdict import Pass, Verdict, judged

_COLUMNS = "{:<15}{:>8}{:>8}{:>7}{:>7}{:>8}{:>11}{:>14}{:>12}{:>9}{:>8}"


class Beside:
    """Several passes on the same graphs.

    Args:
        passes: the passes by name; the first finds the optimum that the others are held against.
        wild: whether the graphs hold rare things, too.
    """

    def __init__(self, passes: dict[str, Pass], *, wild: bool = False) -> None:
        self.passes = passes
        self._wild = wild
        self.tallies: dict[str, Tally] = {name: Tally() for name in passes}
        self.common: dict[str, Tally] = {name: Tally() for name in passes}
        self.same_node: dict[str, int] = dict.fromkeys(passes, 0)

    def add(self, seed: int, *, optimum: bool = True) -> None:
        """Judge all passes on the graph of a seed."""
        graph = random_graph(seed, wild=self._wild)
        least: int | None = None
        verdicts: dict[str, Verdict] = {}
        for name, one_pass in self.passes.items():
            verdict = judged(graph, one_pass, optimum=optimum, least=least)
            verdicts[name] = verdict
            self.tallies[name].add(seed, verdict)
            if verdict.problem is None and optimum:
                least = verdict.least
            elif verdict.problem is not None:
                reasons = {outcome.reason for outcome in analyze(graph.gm).outcomes}
                self.same_node[name] += Reason.SAME_NODE in reasons
        if all(verdict.problem is None for verdict in verdicts.values()):
            # Less than what is legal for all contents is right for these numbers only.
            best = next(iter(verdicts.values())).least
            for name, verdict in verdicts.items():
                after = max(verdict.after, best)
                self.common[name].add(seed, dataclasses.replace(verdict, least=best, after=after))

    def extend(self, other: Beside) -> None:
        """Count the graphs of another comparison of the same passes, too."""
        for name in self.passes:
            self.tallies[name].extend(other.tallies[name])
            self.common[name].extend(other.common[name])
            self.same_node[name] += other.same_node[name]

    def __str__(self) -> str:
        """Return one row per pass; bytes are of the graphs that all passes got right."""
        names = ("pass", "graphs", "values", "alias", "raises", "wrong", "same-node")
        lines = [_COLUMNS.format(*names, "removable B", "removed B", "removed", "above")]
        for name, tally in self.tallies.items():
            raises = sum(v.problem == "error" for _, v in tally.wrong)
            values = len(tally.wrong) - tally.aliased - raises
            counts = (values, tally.aliased, raises, len(tally.wrong), self.same_node[name])
            common = self.common[name]
            bytes_ = (common.removable, common.removed, f"{common.percentage:.2f} %", len(common.above))
            lines.append(_COLUMNS.format(name, tally.graphs, *counts, *bytes_))
        count = next(iter(self.common.values())).graphs
        lines.append(f"bytes, and graphs above the optimum: of the {count} graphs that all got right")
        lines.append("same-node: of the wrong graphs, those where a call reads, elsewhere, what it writes")
        return "\n".join(lines)
