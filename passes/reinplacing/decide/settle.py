"""Deciding one graph by itself: again, with more left alone, until the rewrite can place every value.

Some values must begin where the graph says, and copies would begin elsewhere: these are not made.
"""

from __future__ import annotations

from torch.fx import Graph, Node

from ...graph import wellformed
from ...graph.sizes import is_named
from ...memory.geometry import may_be_padded
from ...memory.region import as_size
from ...ops.views import is_absolute
from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.model import Model
from ..facts.options import Options
from ..facts.premises import Calls, Premises
from ..model.build import build
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
        more = _unplaced(decision) - decision.model.premises.aside
        if not more:
            return decision
        premises = Premises(aside=premises.aside | more)


def _unplaced(decision: Decision) -> frozenset[Node]:
    """Return the wrappers and scatters whose clones the rewrite could not place."""
    model = decision.model
    refused = (model.candidates[i] for i in decision.refused)
    return frozenset(c.node for c in refused if c.kind.begins != "anywhere" and not _is_placed(model, c))


def _is_placed(model: Model, candidate: Candidate) -> bool:
    """Return whether a clone of a candidate's operand can begin where somebody goes by it.

    A clone starts at offset 0 of its storage. Views that name bytes by their offset are moved along, by a
    constant; where the operand starts at a symbolic offset there is none, and the wrapper stays. So it does
    where its own views would move by what no input of the graph gives. Views of
    another dtype may begin at some offsets only, which the wrapper's own copy keeps; so does a clone that
    starts a few bytes into its storage, where Inductor need not follow it.
    """
    value = candidate.operand.value
    begin = as_size(value.storage_offset())
    if is_absolute(candidate.node) and not is_named(begin, model.sizes):
        return False
    if model.layouts.may_copy(candidate.node, value):
        return True
    return candidate.kind.begins == "padded" and model.target.begins_anywhere and may_be_padded(value)
