"""Returned views of what an input was given: they are views of the input, not of the value copied into it.

AOTAutograd makes such outputs anew from the input and uses their metadata alone. Returned as views of the
value, this would have to be in memory beside the input: ``x.div_(y); return x[0]`` would hold ``x`` twice.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch.fx import Graph, Node

from ... import _torch
from ...graph.alias import is_view, uses, viewed
from ...graph.emit import Emitter
from ...memory.region import Region
from ...ops.schema import is_operator, schema_of

aten: Any = torch.ops.aten


def hand_back(graph: Graph, made_anew: Collection[Node]) -> int:
    """Let outputs that are made anew be views of inputs that hold the same values; returns how many views.

    Args:
        graph: a rewritten graph.
        made_anew: its outputs that are used for their metadata alone.
    """
    if not made_anew:
        return 0
    order = {node: i for i, node in enumerate(graph.nodes)}
    copies = graph.find_nodes(op="call_function", target=aten.copy_.default)
    return sum(_hand_back(copy, order, made_anew) for copy in copies if _is_last(copy, order))


def _is_last(copy: Node, order: dict[Node, int]) -> bool:
    """Return whether a copy gives an input, all of it, what it holds in the end."""
    into, source = copy.args[:2]
    if not isinstance(into, Node) or not isinstance(source, Node) or into.op != "placeholder":
        return False
    one, other = into.meta["val"], source.meta["val"]
    if one.dtype != other.dtype or one.device != other.device or Region.of(one) != Region.of(other):
        return False
    later = [user for user, _ in uses(into) if order[user] > order[copy] and user.op != "output"]
    return all(is_operator(user.target) and not schema_of(user.target).mutable for user in later)


def _hand_back(copy: Node, order: dict[Node, int], made_anew: Collection[Node]) -> int:
    into, source = copy.args[:2]
    assert isinstance(into, Node) and isinstance(source, Node)
    emitter = Emitter(copy.graph, _torch.fake_mode_of([source.meta["val"]]), lowered=True)
    users = [user for user in source.users if order[user] > order[copy] and viewed(user) is source]
    views = [view for view in users if _is_only_returned(view, made_anew)]
    for view in views:
        view.replace_input_with(source, into)
        for node in (view, *(user for user, _ in uses(view) if user.op != "output")):
            node.meta["val"] = emitter.value(node)
    return len(views)


def _is_only_returned(view: Node, made_anew: Collection[Node]) -> bool:
    if view.meta.get("unbacked_bindings") or not isinstance(view.meta.get("val"), torch.Tensor):
        return False
    return all(
        read in made_anew
        if user.op == "output"
        else is_view(user)
        and not user.meta.get("unbacked_bindings")
        and isinstance(user.meta["val"], torch.Tensor)
        for user, read in uses(view)
    )
