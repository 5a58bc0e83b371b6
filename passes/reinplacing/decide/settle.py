"""Deciding one graph by itself: again, with more left alone, until the rewrite can place every value."""

from __future__ import annotations

from torch.fx import Graph

from ...graph import wellformed
from ..facts.calls import Calls
from ..facts.decision import Decision
from ..facts.options import Options
from ..facts.premises import Setting
from ..model.build import build
from .beginnings import unplaced
from .choose import best, laid_out
from .reorder import unlocked


def decided(graph: Graph, calls: Calls, options: Options) -> Decision:
    """Decide one graph by itself.

    Raises:
        GraphError: it is no functional graph.
    """
    wellformed.check(graph)
    setting = Setting()
    while True:
        decision = laid_out(best(build(graph, options, setting=setting, calls=calls)))
        if options.order == "free":
            decision = unlocked(decision)
        more = unplaced(decision) - decision.model.setting.aside
        if not more:
            return decision
        setting = Setting(aside=setting.aside | more)
