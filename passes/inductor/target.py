"""What Inductor makes of a rewritten graph: the target that it is to deciding."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from ..graph.alias import is_view
from ..ops.schema import schema_of
from ..ops.true_strides import has_usual_strides
from ..reason import Reason
from ..reinplacing.facts.candidate import Candidate
from ..reinplacing.facts.decision import Decision
from ..reinplacing.facts.refusal import Refusal
from ..reinplacing.facts.target import Target
from .defects import defended
from .lowering import is_stored_by_inductor
from .refuse.writes import lost_by_exchange


class InductorTarget(Target):
    """Inductor, which lowers the graph: it fuses nodes, and makes and exchanges buffers of its own."""

    fuses = True
    makes_as_told = True
    returns_operands = False
    drops_identities = True
    converts_stores = True
    begins_anywhere = False

    def sees_view(self, node: Node, of_input: bool) -> bool:
        """Return whether a view is lowered as one.

        A view of another dtype of the same width is one of an input: what is computed has no memory yet that
        another dtype could look at. For one of another width Inductor calls the operator, on a copy of an
        operand that is itself a view, or has gaps. Of an input that is not aligned it makes a copy on a GPU,
        and does not copy back what is written through such a call.
        """
        if node.target is not torch.ops.aten.view.dtype:
            return schema_of(node.target).lowered_as_view
        source = node.all_input_nodes[0]
        if source.meta["val"].element_size() == node.meta["val"].element_size():
            return of_input
        return not of_input and not is_view(source) and has_usual_strides(source.meta["val"])

    def runs_form(self, form: Any) -> bool:
        """Return whether an in-place form is lowered to what the functional one computes."""
        return not (schema_of(form).is_mislowered and defended("chances-as-a-number"))

    def refusal(self, decision: Decision, candidate: Candidate) -> Refusal | None:
        """Return why a candidate's write would be lost or would store converted values."""
        root = decision.root(candidate.operand.storage)
        if (
            is_stored_by_inductor(candidate)
            and decision.model.dtype_of(root) != candidate.operand.value.dtype
        ):
            return Refusal(Reason.LOWERING, (candidate.operand_node,))
        lost = lost_by_exchange(decision, candidate)
        return None if lost is None else Refusal(Reason.LOWERING, (lost,))


class CopyingTarget(InductorTarget):
    """Inductor, where nothing is to be written in place: what wrappers write are copies."""

    def refusal(self, decision: Decision, candidate: Candidate) -> Refusal | None:
        """Return that nobody looked whether a candidate's write would be right."""
        return Refusal(Reason.LOWERING, (candidate.operand_node,))


INDUCTOR = InductorTarget()
COPYING = CopyingTarget()
