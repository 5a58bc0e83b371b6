"""Deciding one graph by itself: again, with more left alone, until the rewrite can place every value."""

from __future__ import annotations

from torch.fx import Graph

from ...graph import wellformed
from ..facts.calls import Calls
from ..facts.decision import Decision
from ..facts.options import Options
from ..facts.premises import Premises
from ..model.build import build
from .beginnings import unplaced
from .choose import best, improved
from .own_layout import own_layouts
from .reorder import Reordering


def decided(graph: Graph, calls: Calls, options: Options) -> Decision:
    """Decide one graph by itself.

    Raises:
        GraphError: it is no functional graph.
    """
    wellformed.check(graph)
    premises = Premises()
    while True:
        decision = best(build(graph, options, premises=premises, calls=calls))
        decision = improved(decision, own_layouts, as_good=True)
        if options.order == "free":
            reordering = Reordering(decision)
            decision = improved(decision, reordering, reordering.rounds)
        more = unplaced(decision) - decision.model.premises.aside
        if not more:
            return decision
        premises = Premises(aside=premises.aside | more)
