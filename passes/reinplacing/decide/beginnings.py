"""Decided values that would begin elsewhere than the graph says, where it goes by that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.fx import Node

from ...memory.geometry import is_multiple, may_be_padded
from ...memory.region import as_size
from ...ops import higher_order
from ...ops.schema import is_operator, schema_of, tensors
from ..facts.candidate import Candidate, Kind
from ..facts.decision import Decision
from ..facts.model import Model
from ..facts.place import Place
from ..layout.pins import pins, pins_operands


def displaced(decision: Decision) -> frozenset[Node]:
    """Return the candidates' nodes that would let a pinned value begin elsewhere."""
    found: set[Node] = set()
    for node, place in _with_origins(decision, _pinned(decision.model)):
        root, path = decision.root(place.storage), decision.path(place.storage)
        made = decision.model.made_by.get(root)
        is_copy = node in decision.returned or (made is not None and made.index in decision.refused)
        # A copy begins at offset 0, whatever it is a copy of.
        moved = is_copy and as_size(place.value.storage_offset()) != 0
        if moved or place.storage.shift != root.shift:
            found.update(c.node for c in path)
            if made is not None:
                found.add(made.node)
    found.update(c.node for c in decision.model.candidates if _is_copied_call(decision, c))
    return frozenset(found)


def _is_copied_call(decision: Decision, candidate: Candidate) -> bool:
    """Return whether a call would write a copy of an operand beside which another result begins.

    What the subgraph makes of an operand may begin where that does, and a copy begins at offset 0. The result
    that takes the copy's own place is none of these.
    """
    if candidate.kind is not Kind.CALL or candidate.index not in decision.refused:
        return False
    results: Any = candidate.node.meta["val"]
    others = [t for i, value in enumerate(results) if i != candidate.slot for t in tensors(value)]
    is_beside = any(as_size(t.storage_offset()) != 0 for t in others)
    moves = as_size(candidate.operand.value.storage_offset()) != 0
    return moves and is_beside and pins(decision.model, candidate.node)


def _with_origins(decision: Decision, values: Iterable[tuple[Node, Place]]) -> Iterator[tuple[Node, Place]]:
    """Yield values, and what makes each begin where it does.

    A functional copy begins where its first operand does, of which it takes nothing else.
    """
    for node, place in values:
        found: Place | None = place
        while found is not None:
            yield node, found
            maker = decision.root(found.storage).node
            like = maker.args[0] if maker.target is torch.ops.aten.copy.default else None
            found = decision.model.place(like)
            node = like if isinstance(like, Node) else node


def _pinned(model: Model) -> Iterator[tuple[Node, Place]]:
    if model.calls.pinned:
        yield from model.outputs
    for node in model.setting.aside:
        if _keeps_offset(node):
            yield from model.operands((node.args, node.kwargs))
    for call in higher_order.calls(model.graph):
        if pins_operands(model, call):
            yield from model.operands((call.node.args, call.node.kwargs))


def _keeps_offset(node: Node) -> bool:
    """Return whether the result of a call that stays functional begins where its operand does."""
    return not is_operator(node.target) or schema_of(node.target).name.endswith("_scatter")


def unplaced(decision: Decision) -> frozenset[Node]:
    """Return the wrappers whose clones the rewrite could not place.

    A clone starts at offset 0 of its storage. Views that name bytes by their offset are moved along, by a
    constant; where the operand starts at a symbolic offset there is none, and the wrapper stays. Views of
    another dtype may begin at some offsets only, which the wrapper's own copy keeps; so does a clone that
    starts a few bytes into its storage, where Inductor need not follow it.
    """
    model = decision.model
    if not model.addressing.has_names and not model.addressing.has_dtype_views:
        return frozenset()
    candidates = (model.candidates[i] for i in decision.refused)
    return frozenset(
        c.node
        for c in candidates
        if c.kind not in (Kind.INDEX_PUT, Kind.CLONE, Kind.COPY, Kind.AUTO_OUT) and not _is_placed(model, c)
    )


def _is_placed(model: Model, candidate: Candidate) -> bool:
    value = candidate.operand.value
    start = as_size(value.storage_offset())
    if model.addressing.names(candidate.node) and not isinstance(start, int):
        return False
    if is_multiple(start * value.element_size(), model.addressing.views(candidate.node)):
        return True
    return candidate.kind is not Kind.SCATTER and model.target.begins_anywhere and may_be_padded(value)
