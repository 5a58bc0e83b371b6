"""Epilogues, which write inputs at the end of the forward, kept away from what still needs the old values.

Where an epilogue stores the old value of an input, it comes before the one that writes that input: otherwise
the value would have to be copied. What is computed from an input that an epilogue writes, and is needed by
the backward, is saved: computed again, it would be computed from what the forward has written.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.utils.checkpoint import CheckpointPolicy

from ...graph.alias import alias_of, uses, written
from ...ops.identities import handed_on
from ...post_grad.no_ops import folded
from ...post_grad.times import Times

aten: Any = torch.ops.aten


def order(graph: Graph) -> None:
    """Let every epilogue that stores an input run before the one that writes it, where they do not cross."""
    waiting = list(graph.find_nodes(op="call_function", target=aten.copy_.default))
    if any(a.next is not b for a, b in itertools.pairwise(waiting)):
        return  # something stands between them
    while waiting:
        stored = {node: _stored(node) for node in waiting}
        free = [n for n in waiting if not any(stored[m] is n.args[0] for m in waiting if m is not n)]
        first = (free or waiting)[0]
        if first is not waiting[0]:
            waiting[0].prepend(first)
        waiting.remove(first)


def _stored(epilogue: Node) -> Node:
    """Return what an epilogue stores when copies and views are looked through."""
    stored: Any = epilogue.args[1]
    value: Node = stored
    while source := alias_of(value) or handed_on(value) or folded(value):
        value = source
    return value


def save_readers(graph: Graph) -> None:
    """Have saved, not computed again, what the backward needs of an input that the forward writes."""
    if not any(map(written, graph.nodes)):
        return
    times = Times(graph)
    needed = times.handed_over()
    for given in graph.find_nodes(op="placeholder") if needed else ():
        found = list(uses(given))
        if not any(name in written(user) and not times.is_late(user) for user, name in found):
            continue
        for user, name in found:
            is_read = alias_of(user) is not name and name not in written(user)
            if is_read and user in needed and "recompute" not in user.meta:
                user.meta["recompute"] = CheckpointPolicy.MUST_SAVE
                if times.is_late(user):
                    _compute_early(graph, user)


def _compute_early(graph: Graph, node: Node) -> None:
    """Have the forward compute what it does not need itself, by a check that nobody sees."""
    if isinstance(node.meta.get("val"), torch.Tensor):
        with graph.inserting_after(node):
            graph.call_function(aten._assert_tensor_metadata.default, (node,)).meta["val"] = None
