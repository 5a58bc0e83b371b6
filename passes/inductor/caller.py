"""Who takes what a graph returns, as AOTAutograd and Dynamo know it while the graph is compiled."""

from __future__ import annotations

from torch.fx import Graph

from ..ops.source import place
from ..reinplacing.facts.options import Caller
from ._torch import graph_break, outputs_by_taker


def caller_of(graph: Graph) -> Caller:
    """Return who takes what a graph returns, nothing where it is not being compiled by ``torch.compile``.

    A backward graph has no graph break, even where it is compiled together with its forward.
    """
    saved, results = outputs_by_taker(graph)
    ended = graph_break() if results else None
    return Caller(frozenset(node.name for node in saved), place(*ended) if ended else "")
