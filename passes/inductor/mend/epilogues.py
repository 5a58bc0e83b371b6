"""Epilogues, which write inputs at the end of the forward: when they run, and what needs the old values.

Some are AOTAutograd's own, which runs them when the graph has ended. Where an epilogue stores the old value
of an input, it comes before the one that writes that input: otherwise the value would have to be copied. What
is computed from an input that an epilogue writes, and is needed by the backward, is saved: computed again, it
would be computed from what the forward has written.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.utils.checkpoint import CheckpointPolicy

from ... import _torch
from ...graph.alias import alias_of, base_of, is_epilogue, is_view, shared_by_inputs, uses, written
from ...graph.collective import is_collective
from ...ops.identities import handed_on
from ...post_grad.no_ops import folded
from ...post_grad.times import Times
from .._torch import takes_program_inputs

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


def early(graph: Graph) -> dict[Node, Node]:
    """Return the epilogues that could run before the end, each with the node behind which it could.

    That is once the value is made, and the last node has run that is given the input. What is computed of
    the input and put off Inductor stores before that: so it may hold less or more, and only trying tells.
    """
    behind = itertools.islice(reversed(graph.nodes), 1, None)  # without the output
    last_ones = list(itertools.takewhile(lambda node: is_epilogue(node) or is_view(node), behind))
    if not any(map(is_epilogue, last_ones)):
        return {}
    order = {node: i for i, node in enumerate(graph.nodes)}
    shared, end = shared_inputs(graph), len(order) - len(last_ones) - 2  # where the last other node is
    write = {base_of(name): node for node in graph.nodes for name in written(node)}  # the last one
    found = {}
    for epilogue in filter(is_epilogue, reversed(last_ones)):
        stored: Any = epilogue.args[:2]
        given, value = stored
        if given in shared:
            continue
        users = [user for user, _ in uses(given) if user is not epilogue]
        place = max((value, *users, write.get(base_of(value), value)), key=order.__getitem__)
        is_sent = any(is_collective(user.target) for user in users)
        if order[place] < end and place.op != "placeholder" and not is_sent:
            found[epilogue] = place
    return found


def shared_inputs(graph: Graph) -> set[Node]:
    """Return the inputs that may share bytes with another one."""
    first: dict[Any, Node] = {}
    found: set[Node] = set()
    shared = shared_by_inputs if takes_program_inputs(graph) else _torch.storage_key
    for node in graph.find_nodes(op="placeholder"):
        val = node.meta.get("val")
        if isinstance(val, torch.Tensor):
            other = first.setdefault(shared(val), node)
            found.update((node, other) if other is not node else ())
    return found


def _stored(epilogue: Node) -> Node:
    """Return what an epilogue stores when copies and views are looked through."""
    stored: Any = epilogue.args[1]
    value: Node = stored
    while source := alias_of(value) or handed_on(value) or folded(value):
        value = source
    return value


def save_readers(graph: Graph) -> None:
    """Have saved, not computed again, what the backward needs of an input that the forward writes."""
    afterwards = _torch.stored_afterwards(graph)
    if not afterwards and not any(map(written, graph.nodes)):
        return
    times = Times(graph)
    needed = times.handed_over()
    for given in graph.find_nodes(op="placeholder") if needed else ():
        found = list(uses(given))
        is_written = any(name in written(user) and not times.is_late(user) for user, name in found)
        if not is_written and given not in afterwards:
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
