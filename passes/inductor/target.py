"""What Inductor makes of a rewritten graph: the target that it is to deciding."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from .. import _torch
from ..graph.alias import base_of, is_view, viewed
from ..ops import lists
from ..ops.computed import MASKS, is_generated
from ..ops.in_place_form import in_place_form, is_lowered_apart
from ..ops.schema import argument, is_operator, schema_of, tensors, traits_of
from ..ops.true_strides import has_usual_strides
from ..reason import Reason
from ..reinplacing.facts.candidate import Candidate, Refusal
from ..reinplacing.facts.decision import Decision
from ..reinplacing.facts.model import Model
from ..reinplacing.facts.place import Storage
from ..reinplacing.facts.target import Target
from ._torch import takes_program_inputs
from .defects import defended
from .lowering import is_stored_by_inductor
from .mend.element_op import element_op


class InductorTarget(Target):
    """Inductor, which lowers the graph: it fuses nodes, and makes and exchanges buffers of its own."""

    fuses = True
    makes_as_told = True
    returns_operands = False
    drops_identities = True
    converts_stores = True
    begins_anywhere = False

    def takes_program_inputs(self, graph: Graph) -> bool:
        """Return whether AOTAutograd gives a graph the inputs of a program."""
        return takes_program_inputs(graph)

    def sees_view(self, node: Node, of_input: bool) -> bool:
        """Return whether a view is lowered as one.

        A view of another dtype of the same width is one of an input: what is computed has no memory yet that
        another dtype could look at. It is one by its strides, so not behind a view that has none. For one of
        another width Inductor calls the operator, on a copy of an operand that is itself a view, or has gaps.
        Of an input that is not aligned it makes a copy on a GPU, and does not copy back what is written
        through such a call.
        """
        if node.target is not torch.ops.aten.view.dtype:
            return schema_of(node.target).lowered_as_view
        source = node.all_input_nodes[0]
        if source.meta["val"].element_size() == node.meta["val"].element_size():
            return of_input and not _is_behind_indices(source)
        return not of_input and not is_view(source) and has_usual_strides(source.meta["val"])

    def runs_form(self, node: Node, form: Any) -> bool:
        """Return whether an in-place form is lowered to what the functional one computes, for no more.

        Where only the functional one is lowered, the other is a call of its kernel, or, of a list that is in
        no kernel for lists, its elements are computed and stored one by one (``single_lists.store_apart``).
        """
        if schema_of(form).is_mislowered and defended("chances-as-a-number"):
            return False
        if not is_lowered_apart(node.target, form):
            return True
        if lists.is_list(node):
            return element_op(form) is not None and not any(map(lists.has_blocks, tensors(node.meta["val"])))
        # A buffer of Inductor's that a kernel has written is not used again for what is computed of it.
        is_input = base_of(node.args[0]).op == "placeholder"  # type: ignore[arg-type]
        if schema_of(node.target).scans:
            return is_input and bool(node.meta["val"].device.type == "cpu")
        if any(map(_torch.inductor_setting, ("max_autotune", "max_autotune_gemm"))):
            return False
        return is_input or _goes_into_part(node)

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


def _is_behind_indices(node: Node | None) -> bool:
    """Return whether a view, or one that it is a view of, tells places of elements and no strides."""
    while node is not None and not traits_of(node.target).maps_indices:
        node = viewed(node)
    return node is not None


def _may_begin_as_a_copy(decision: Decision, root: Storage) -> bool:
    """Return whether a buffer may begin as a copy that is written: the next write into it is the second one.

    So may what could be written in place and is not, but for clones, and what Inductor lowers functional
    operators to whose in-place form it lowers.
    """
    target, maker = root.node.target, decision.model.made_by.get(root)
    if maker is not None or not is_operator(target):
        return maker is not None and not maker.kind.is_clone
    form = in_place_form(target)
    return schema_of(target).writes_through is not None or (form is not None and _torch.is_lowered(form))


def lost_by_exchange(decision: Decision, candidate: Candidate) -> Node | None:
    """Return what would be lost if a candidate were written in place by Inductor, ``None`` if nothing would.

    What it computes by itself of lists, fills and masked values it does not write into a buffer that it made:
    it makes another one and exchanges the two. What it stored before goes into the new one then, what was
    given a view before is given one of the new, and that has strides of its own. Functional they
    are the same, without the exchange.
    """
    if not _is_exchanged(candidate) or not defended("exchanged-buffer"):
        return None
    root = decision.root(candidate.operand.storage)
    if root.is_input:
        return None
    if not traits_of(candidate.node.target).is_index_put:
        return root.node
    if candidate.operand.value.dim() > 1 and _is_asked_for_strides(decision.model, candidate):
        return root.node
    for earlier in decision.path(candidate.operand.storage):
        if not earlier.kind.is_clone:
            return earlier.node
    if _may_begin_as_a_copy(decision, root):
        return root.node
    earlier_reads = (r for r in decision.model.reads[root] if r.time < candidate.time)
    return next((r.node for r in earlier_reads if not _takes_whole(decision, r.node, root)), None)


def _is_asked_for_strides(model: Model, candidate: Candidate) -> bool:
    """Return whether anybody goes by the strides of a result: whom it is returned to, or who names bytes."""
    asked = model.layouts.of(candidate.node)
    return bool(asked.named or asked.viewed) or model.trees[candidate.result] in model.returned_trees


def _takes_whole(decision: Decision, node: Node, root: Storage) -> bool:
    """Return whether a node is computed of a buffer itself: what takes a view may come after the exchange."""
    places = ((n, decision.model.place(n)) for n in node.all_input_nodes)
    taken = (n for n, place in places if place is not None and decision.root(place.storage) is root)
    return is_generated(node) and all(n is root.node for n in taken)


def _is_exchanged(candidate: Candidate) -> bool:
    if traits_of(candidate.node.target).is_index_put:
        indices: Any = argument(candidate.node, "indices")
        return any(index is not None and index.meta["val"].dtype in MASKS for index in indices)
    if not candidate.kind.by_form:
        return False
    return lists.is_list(candidate.node) or schema_of(candidate.node.target).name == "aten::fill"


def _goes_into_part(node: Node) -> bool:
    """Return whether a result is stored into a part of something, as ``x[i:j] -= a @ b`` does."""
    stores = (
        u for u in node.users if is_operator(u.target) and schema_of(u.target).writes_through is not None
    )
    return any(argument(user, "src") is node for user in stores)
