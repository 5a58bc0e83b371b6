"""Keeps copies that matter alive through Inductor's joint-graph stage.

AOTAutograd's graph is right as it comes; before any post-grad hook runs, Inductor's ``remove_noop_ops``
drops clones and other identities from it. That is harmless except where

* an input is read by an epilogue ``copy_`` after another epilogue has written it (the identity that held
  the old value is gone): the epilogues are put in an order in which every reader comes first, and where
  they form a cycle one value is copied;
* two outputs, or an output and an input, were kept apart only by identities;
* an explicit clone is what lets the pass write in place, at less bytes than any other copy.

Such copies are written as ``prims.clone``, which no-op removal does not know, and turned back into
``aten.clone`` before the pass decides whether they are needed.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch.fx import Graph, Node

from ... import _torch
from ...graph.alias import viewed
from ...memory.geometry import Geometry
from ...memory.region import Region
from ...ops.schema import is_operator, schema_of, target_name
from ..defects import defended

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims


def protect(graph: Graph) -> None:
    """Hide the copies that matter and order the epilogues; the graph computes the same as before."""
    geometry = Geometry(_shape_env(graph))
    is_kept_apart = defended("merged-outputs")
    for node in graph.find_nodes(op="call_function", target=aten.clone.default):
        if is_kept_apart and _is_pure(geometry, node):
            _hide(graph, node)
    if defended("late-epilogue"):
        _order_epilogues(graph, geometry)
    if is_kept_apart:
        _protect_outputs(graph)


def reveal(graph: Graph) -> None:
    """Turn hidden copies back into ``aten.clone``."""
    for node in graph.find_nodes(op="call_function", target=prims.clone.default):
        node.target = aten.clone.default


def _shape_env(graph: Graph) -> object:
    mode = _torch.fake_mode_of([n.meta.get("val") for n in graph.nodes if n.op == "placeholder"])
    return getattr(mode, "shape_env", None)


def _val(node: Node) -> torch.Tensor | None:
    val = node.meta.get("val")
    return val if isinstance(val, torch.Tensor) else None


def _is_pure(geometry: Geometry, node: Node) -> bool:
    """Return whether a clone keeps its operand's layout: then nothing but storage sets them apart."""
    source = node.args[0]
    old, new = (_val(source) if isinstance(source, Node) else None), _val(node)
    return old is not None and new is not None and geometry.same_layout(Region.of(old), Region.of(new))


def _hide(graph: Graph, node: Node) -> None:
    with graph.inserting_before(node):
        hidden = graph.call_function(prims.clone.default, (node.args[0],))
    hidden.meta.update(node.meta)
    node.replace_all_uses_with(hidden)
    graph.erase_node(node)


def _copy_of(graph: Graph, value: Node, before: Node) -> Node:
    with graph.inserting_before(before):
        copy = graph.call_function(prims.clone.default, (value,))
    copy.meta.update(value.meta)
    val = _val(value)
    if val is not None:
        copy.meta["val"] = _torch.run_fake(_torch.fake_mode_of([val]), aten.clone.default, (val,), {})
    return copy


def _origin(node: Node) -> tuple[Node | None, bool]:
    """Return the operand that a node is a view of or may turn into, and whether it is no mere view."""
    source: object = viewed(node)
    if isinstance(source, Node) or not is_operator(node.target):
        return source, False  # type: ignore[return-value]
    schema = schema_of(node.target)
    if schema.is_neutral:
        source = _other_than_constants(node)
    elif schema.identity is not None and len(node.args) > schema.identity:
        source = node.args[schema.identity]
    if isinstance(source, list | tuple) and source:
        source = source[0]
    return (source, True) if isinstance(source, Node) else (None, False)


def _resolve(node: Node) -> tuple[Node, Node | None]:
    """Return what a value may become when views and identities are looked through.

    The second is the identity nearest to the value, ``None`` when there are only views on the way.
    """
    identity = None
    while True:
        source, is_identity = _origin(node)
        if source is None:
            return node, identity
        if is_identity and identity is None:
            identity = node
        node = source


def _other_than_constants(node: Node) -> Node | None:
    """Return the one operand of an arithmetic operator that is not made of constants alone."""
    varying = [n for n in node.args[:2] if isinstance(n, Node) and not _is_constant(n)]
    constant = [n for n in node.args[:2] if isinstance(n, Node) and _is_constant(n)]
    return varying[0] if len(varying) == 1 and constant else None


def _is_constant(node: Node) -> bool:
    pending, seen = [node], 0
    while pending and seen < 16:
        node = pending.pop()
        seen += 1
        if node.op == "placeholder":
            return False
        pending.extend(node.all_input_nodes)
    return not pending


def _order_epilogues(graph: Graph, geometry: Geometry) -> None:
    """Let every epilogue that may read an input run before the one that writes it."""
    epilogues = [n for n in graph.nodes if n.target is aten.copy_.default and not n.users]
    if len(epilogues) < 1 or not _is_tail(epilogues):
        return
    waiting = dict.fromkeys(epilogues)
    ordered: list[Node] = []
    while waiting:
        free = [n for n in waiting if not _readers(n, waiting)]
        if not free:  # a cycle: copy one value that is still needed
            first = next(iter(waiting))
            for reader in _readers(first, waiting):
                reader.args = (reader.args[0], _copy_of(graph, reader.args[1], epilogues[0]))  # type: ignore[arg-type]
            continue
        for node in free:
            ordered.append(node)
            del waiting[node]
    for node in ordered:
        if _reads_itself(node, geometry):
            node.args = (node.args[0], _copy_of(graph, node.args[1], epilogues[0]))  # type: ignore[arg-type]
    if ordered == epilogues:
        return
    last = epilogues[-1]
    for node in ordered:
        if node is not last:
            last.append(node)
            last = node
    ordered[0].prev.append(ordered[0])


def _is_tail(epilogues: list[Node]) -> bool:
    """Return whether the epilogues stand together, in one run, so that their order is free."""
    return all(a.next is b for a, b in itertools.pairwise(epilogues))


def _readers(node: Node, waiting: dict[Node, None]) -> list[Node]:
    """Return the other waiting epilogues whose value may be the input that ``node`` writes."""
    return [n for n in waiting if n is not node and _resolve(n.args[1])[0] is node.args[0]]  # type: ignore[arg-type]


def _reads_itself(node: Node, geometry: Geometry) -> bool:
    """Return whether an epilogue may end up copying an input onto itself in another layout."""
    destination, value = node.args[0], node.args[1]
    assert isinstance(destination, Node) and isinstance(value, Node)
    if _resolve(value)[0] is not destination:
        return False
    while value is not destination:
        source, is_identity = _origin(value)
        if source is None or (not is_identity and not _same(geometry, value, destination)):
            return True
        value = source
    return False


def _same(geometry: Geometry, a: Node, b: Node) -> bool:
    x, y = _val(a), _val(b)
    return x is not None and y is not None and geometry.same(Region.of(x), Region.of(y))


def _protect_outputs(graph: Graph) -> None:
    """Copy what is told apart from an input or from another output by identities alone.

    The copy stands right behind the identity and serves all its users, so that outputs which are views of
    one identity go on sharing storage, and no epilogue has written the identity's operand yet.
    """
    output = next(n for n in reversed(graph.nodes) if n.op == "output")
    leaves = list(output.all_input_nodes)
    ends = {leaf: _resolve(leaf) for leaf in leaves}
    for leaf in leaves:
        end, identity = ends[leaf]
        if identity is None or target_name(identity.target) == "prims::clone":
            continue
        shared = end.op in ("placeholder", "get_attr") or any(
            ends[other][0] is end and ends[other][1] is not identity for other in leaves
        )
        if shared and not any(target_name(u.target) == "prims::clone" for u in identity.users):
            copy = _copy_of(graph, identity, identity.next)
            for user in [u for u in identity.users if u is not copy]:
                user.replace_input_with(identity, copy)
