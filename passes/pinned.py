"""Values that must begin where the graph says: subgraphs go by their offset into their storage.

Inside one graph such offsets are moved along with the bytes that they name. Across a call they cannot be: a
subgraph is written once, for all of its calls. So an operand that a subgraph addresses that way stays at
its offset, and so does what a subgraph returns, which the caller may address that way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Graph, Node

from . import _torch, attribute, drift, hidden_alias, hop, scatter
from .addressing import goes_by_beginning
from .candidate import Candidate, Kind
from .place import Place
from .region import as_size
from .schema import is_operator, schema_of, tensors
from .told import is_mistold

if TYPE_CHECKING:
    from .decision import Decision
    from .model import Model


def names_offsets(graph: Graph) -> bool:
    """Return whether a graph, or one that it calls, names bytes by an offset, or asks for one."""
    return any(goes_by_beginning(node) for one in graphs(graph) for node in one.nodes)


def are_hidden(graph: Graph, *, lowered: bool = False) -> bool:
    """Return whether offsets name bytes of what may begin elsewhere than a graph says.

    What is moved to the device where it is remains where it is, and the graph says that it is a copy; what is
    made of a slice begins where that does, and so does a view scatter, but not inside Inductor, which makes
    memory for it. Then offsets, in a graph or in one that it calls, name other bytes than they say, and no
    copy may be another.
    """
    called = list(graphs(graph))
    if not lowered and any(map(scatter.displaced, called)):
        return names_offsets(graph)
    pairs = itertools.product(called, hidden_alias.OPERATORS)
    handing = (n for one, target in pairs for n in one.find_nodes(op="call_function", target=target))
    if any(map(is_mistold, handing)):
        return names_offsets(graph)
    is_sliced = any(body.sliced for one in called for call in hop.calls(one) for body in call.bodies)
    return is_sliced and names_offsets(graph) and drift.names_adrift(graph)


def graphs(graph: Graph) -> Iterator[Graph]:
    """Yield a graph and those that it calls, each once."""
    pending, seen = [graph], set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        modules = (hop.subgraph(one, node) for node in one.find_nodes(op="get_attr"))
        pending.extend(module.graph for module in modules if module is not None)


def held_inside(graph: Graph) -> frozenset[int | None]:
    """Return the storages of tensors that called subgraphs take from modules of their own."""
    _, *called = graphs(graph)
    taken = (attribute.value(node) for one in called for node in one.find_nodes(op="get_attr", sort=False))
    keys = {_torch.storage_key(value) for value in taken if isinstance(value, torch.Tensor)}
    return frozenset(keys - {None})


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
    for call in hop.calls(model.graph):
        if _pins(model, call):
            yield from model.operands((call.node.args, call.node.kwargs))


def pins(model: Model, node: Node) -> bool:
    """Return whether a node calls subgraphs whose operands must begin where the graph says."""
    call = hop.call_of(node)
    return call is not None and _pins(model, call)


def _pins(model: Model, call: hop.Call) -> bool:
    # A result may begin where an operand does; what is made inside may come to lie in an operand's bytes.
    bodies = (*call.bodies, *call.tests)
    return model.addressing.has_beginnings or any(names_offsets(body.module.graph) for body in bodies)


def _keeps_offset(node: Node) -> bool:
    """Return whether the result of a call that stays functional begins where its operand does."""
    return not is_operator(node.target) or schema_of(node.target).name.endswith("_scatter")
