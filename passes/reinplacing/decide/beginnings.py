"""Values that must begin where the graph says, and copies that would begin elsewhere: they are not made."""

from __future__ import annotations

from torch.fx import Node

from ...graph.sizes import is_named
from ...memory.geometry import may_be_padded
from ...memory.region import as_size
from ...ops.views import is_absolute
from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.model import Model


def unplaced(decision: Decision) -> frozenset[Node]:
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
