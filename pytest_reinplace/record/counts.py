"""The numbers that every summary shows: of some graphs, and of several tests together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NAMES = ("graphs", "candidates", "reinplaced", "cloned", "clone_bytes")


def counts_of(graphs: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the numbers of graphs as ``CapturedGraph.to_dict`` gives them."""
    found = list(graphs)
    outcomes = [outcome for graph in found for outcome in graph["outcomes"]]
    clones = [outcome for outcome in outcomes if not outcome["reinplaced"]]
    return {
        "graphs": len(found),
        "candidates": len(outcomes),
        "reinplaced": len(outcomes) - len(clones),
        "cloned": len(clones),
        "clone_bytes": sum(outcome["nbytes"] for outcome in clones),
    }


def total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the numbers of several tests added up."""
    sums = dict.fromkeys(NAMES, 0)
    for one in counts:
        for name in NAMES:
            sums[name] += one[name]
    return sums
