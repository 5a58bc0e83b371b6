"""What is known of some values, spread over a graph and all that it calls, forward or backward.

A subgraph is planned by itself, once for all of its calls, and on a copy of its graph. What its operands are
like beyond what their fake tensors say is found out before, for a graph and all that it calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

import torch
from torch.fx import Graph, Node

from .. import _torch
from ..ops import higher_order
from ..ops.beginning import EXACT, asked, goes_by_beginning, hands_on
from ..ops.schema import is_operator
from ..ops.views import is_absolute
from . import attribute


def spread(start: Mapping[Node, int], step: Callable[[Node], Iterable[Node]]) -> dict[Node, int]:
    """Return the largest number that reaches each node.

    Args:
        start: the numbers of some nodes.
        step: where what is known of a node goes on to: to those that use it, or to what it is made of.
    """
    found: dict[Node, int] = {}
    pending = sorted(start, key=start.__getitem__)  # the largest last, and taken first: each node once
    while pending:
        first = pending.pop()
        reached = [first]
        while reached:
            node = reached.pop()
            if node not in found:
                found[node] = start[first]
                reached.extend(step(node))
    return found


def backward(asks: Mapping[Node, int]) -> dict[Node, int]:
    """Return what is asked of values, by those that use them or what may come to lie in their bytes."""
    handing: dict[int, bool] = {}  # each target is asked about once; to hash it takes torch a microsecond

    def step(node: Node) -> Iterable[Node]:
        key = id(node.target)
        if key not in handing:
            handing[key] = node.op == "call_function" and hands_on(node.target)
        return node.all_input_nodes if handing[key] else ()

    start: dict[Node, int] = {}
    for node in sorted(asks, key=asks.__getitem__):
        start.update(dict.fromkeys(node.all_input_nodes, asks[node]) if asks[node] else {})
    return spread(start, step)


def graphs(root: Graph) -> Iterator[Graph]:
    """Yield a graph and those that it calls, each once."""
    pending, seen = [root], set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        modules = (higher_order.subgraph(one, node) for node in one.find_nodes(op="get_attr"))
        pending.extend(module.graph for module in modules if module is not None)


def kept_by_subgraphs(root: Graph) -> frozenset[int | None]:
    """Return the storages of tensors that called subgraphs take from modules of their own."""
    _, *called = graphs(root)
    taken = (attribute.value(node) for one in called for node in one.find_nodes(op="get_attr", sort=False))
    keys = {_torch.storage_key(value) for value in taken if isinstance(value, torch.Tensor)}
    return frozenset(keys - {None})


def names_offsets(root: Graph) -> bool:
    """Return whether a graph, or one that it calls, goes by where a value begins in its storage."""
    return any(goes_by_beginning(node) for graph in graphs(root) for node in graph.nodes)


def names_one(node: Node) -> bool:
    """Return whether a node names an offset into a storage, asks for it, or calls what goes by one."""
    if node.op != "call_function":
        return False
    if is_absolute(node) or asked(node) == EXACT:
        return True
    return not is_operator(node.target) and any(map(names_offsets, _bodies(node)))


def _bodies(call: Node) -> Iterator[Graph]:
    taken = (n for n in call.all_input_nodes if n.op == "get_attr")
    modules = (higher_order.subgraph(call.graph, n) for n in taken)
    return (module.graph for module in modules if module is not None)


class Flow:
    """How values pass from operands to results, in a graph and in those that it calls."""

    def __init__(self, root: Graph) -> None:
        self.graphs: tuple[Graph, ...] = tuple(graphs(root))
        self.sliced: list[Node] = []  # the placeholders that are given one slice after the other
        self.calls: set[Node] = set()
        self._across: dict[Node, list[Node]] = defaultdict(list)
        self._stacked: dict[Node, list[Node]] = defaultdict(list)
        for call in (call for graph in self.graphs for call in higher_order.calls(graph)):
            self.calls.add(call.node)
            for body in call.tests:
                self._give(call, body)
            for body in call.bodies:
                self._return(call, body, self._give(call, body))

    def forward(
        self, start: Iterable[Node], keeps: Callable[[Node, Node], bool], *, stacked: bool = True
    ) -> set[Node]:
        """Return the nodes that are like some from the beginning, and those that come to be.

        Args:
            start: the former.
            keeps: whether a node, which calls no subgraph, is so if this operand is. What a subgraph is given
                is like what it is given, and a call like what its subgraphs return.
            stacked: whether what is stacked of many such values is, too.
        """

        def step(node: Node) -> Iterator[Node]:
            users = (user for user in node.users if user.op == "call_function" and user not in self.calls)
            yield from (user for user in users if keeps(user, node))
            yield from self._across.get(node, ())
            yield from self._stacked.get(node, ()) if stacked else ()

        return set(spread(dict.fromkeys(start, 1), step))

    def _give(self, call: higher_order.Call, body: higher_order.Body) -> list[Node]:
        """Note what a subgraph is given; returns its placeholders."""
        placeholders = body.module.graph.find_nodes(op="placeholder")
        for i, (placeholder, slot) in enumerate(zip(placeholders, body.operands, strict=True)):
            value = call.value(slot)
            if isinstance(value, Node):
                self._across[value].append(placeholder)
            if i in body.sliced:
                self.sliced.append(placeholder)
        return list(placeholders)

    def _return(self, call: higher_order.Call, body: higher_order.Body, placeholders: list[Node]) -> None:
        """Note what a subgraph returns, and what is carried to the next iteration."""
        graph = body.module.graph
        values = higher_order.outputs(graph)
        if values is None:  # nested: such a subgraph stays functional, so which one it is does not matter
            values = [n for end in graph.find_nodes(op="output") for n in end.all_input_nodes]
        for i, value in enumerate(values):
            if not isinstance(value, Node):
                continue
            (self._stacked if call.is_stacked(i) else self._across)[value].append(call.node)
            if i < min(call.carried, len(placeholders)):
                self._across[value].append(placeholders[i])
