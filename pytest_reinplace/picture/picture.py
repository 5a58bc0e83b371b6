"""What a page shows of one graph: its lines before and after the pass, and its memory over time."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from . import listing
from .listing import Line
from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch.fx import Graph, Node

    from ..passes import Report


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """One graph, to be looked at.

    Args:
        before: the functional graph.
        after: what the pass under test made of it.
        memory: live bytes while it runs.
    """

    before: tuple[Line, ...]
    after: tuple[Line, ...]
    memory: Timeline

    @classmethod
    def of(cls, before: Mapping[str, Node], after: Graph, report: Report) -> Picture:
        """Draw a graph; of a large one only the lines that tell something, and some around them.

        Args:
            before: nodes of the functional graph by their names, copies that the pass has not rewritten.
            after: the rewritten graph.
            report: what was decided.
        """
        outcomes = [o for o in report.outcomes if not o.graph]
        clones = [o for o in outcomes if not o.reinplaced]
        telling = {o.node for o in clones} | {b.node for o in clones for b in o.blockers}
        now = {node.name: node for node in after.nodes}
        changed = telling | {name for name in now if name not in before}
        return cls(
            before=tuple(listing.abridged(listing.lines_of(before), telling)),
            after=tuple(listing.abridged(listing.lines_of(now), changed)),
            memory=Timeline.of(before, outcomes),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the picture as JSON-ready data."""
        return {
            "before": [line.to_dict() for line in self.before],
            "after": [line.to_dict() for line in self.after],
            "memory": self.memory.to_dict(),
        }


def copied(graph: Graph) -> dict[str, Node]:
    """Return copies of a graph's nodes by the names of the originals, in order."""
    from torch.fx import Graph

    copies: dict[Node, Node] = {}
    returned = Graph()
    result = returned.graph_copy(graph, copies)
    found = {node.name: copies[node] for node in graph.nodes if node in copies}
    (end,) = graph.find_nodes(op="output")
    found[end.name] = returned.output(result)
    return found
