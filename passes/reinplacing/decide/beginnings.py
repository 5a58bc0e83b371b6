"""Values that must begin where the graph says: subgraphs go by their offset into their storage.

Inside one graph such offsets are moved along with the bytes that they name. Across a call they cannot be: a
subgraph is written once, for all of its calls. So an operand that a subgraph addresses that way stays at
its offset, and so does what a subgraph returns, which the caller may address that way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.fx import Node

from ...memory.geometry import may_be_padded
from ...memory.region import as_size
from ...ops import higher_order
from ...ops.schema import is_operator, schema_of, tensors
from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.model import Model
from ..facts.place import Place


def moved(decision: Decision) -> frozenset[Node]:
    """Return the candidates' nodes that would let a value begin where it must not."""
    model = decision.model
    refused = (model.candidates[i] for i in decision.refused)
    unplaced = {c.node for c in refused if not _is_placed(model, c)}
    return frozenset(unplaced | (_displaced(decision) if model.calls.known.has_beginnings else set()))


def _is_placed(model: Model, candidate: Candidate) -> bool:
    """Return whether the rewrite can place the clone that a refused candidate writes.

    A clone starts at offset 0 of its storage. Views that name bytes by their offset are moved along, by a
    constant; where the operand starts at a symbolic offset there is none, and the wrapper stays. Views of
    another dtype may begin at some offsets only, which the wrapper's own copy keeps; so does a clone that
    starts a few bytes into its storage, where Inductor need not follow it.
    """
    if candidate.kind.begins == "anywhere":
        return True
    value = candidate.operand.value
    if model.layouts.of(candidate.node).may_move(as_size(value.storage_offset()) * value.element_size()):
        return True
    return candidate.kind.begins == "padded" and model.target.begins_anywhere and may_be_padded(value)


def _displaced(decision: Decision) -> set[Node]:
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
    return found


def _is_copied_call(decision: Decision, candidate: Candidate) -> bool:
    """Return whether a call would write a copy of an operand beside which another result begins.

    What the subgraph makes of an operand may begin where that does, and a copy begins at offset 0. The result
    that takes the copy's own place is none of these.
    """
    if candidate.index not in decision.refused or higher_order.call_of(candidate.node) is None:
        return False
    results: Any = candidate.node.meta["val"]
    others = [t for i, value in enumerate(results) if i != candidate.slot for t in tensors(value)]
    is_beside = any(as_size(t.storage_offset()) != 0 for t in others)
    return is_beside and as_size(candidate.operand.value.storage_offset()) != 0


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
    if model.calls.inner:
        yield from model.outputs
    for node in model.setting.aside:
        if _keeps_offset(node):
            yield from model.operands((node.args, node.kwargs))
    for call in higher_order.calls(model.graph):
        yield from model.operands((call.node.args, call.node.kwargs))


def pins(model: Model, node: Node) -> bool:
    """Return whether a node calls subgraphs whose operands must begin where the graph says.

    A result may begin where an operand does; what is made inside may come to lie in an operand's bytes.
    """
    return model.calls.known.has_beginnings and higher_order.call_of(node) is not None


def _keeps_offset(node: Node) -> bool:
    """Return whether the result of a call that stays functional begins where its operand does."""
    return not is_operator(node.target) or schema_of(node.target).name.endswith("_scatter")
