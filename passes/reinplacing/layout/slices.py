"""Values that begin where a slice does: their fake tensors begin where that of the first slice does.

A subgraph that is run on slices is given one after the other, each at another offset into the same storage,
and traced with the first. What a wrapper makes of one keeps its offset, and so does a carry in the end. Bytes
of such a value that are named by an offset are others than the graph says, at all iterations but one.
"""

from __future__ import annotations

from collections.abc import Collection

from torch.fx import Graph, Node

from ...ops import higher_order
from ...ops.beginning import goes_by_beginning, hands_on


def names_adrift(graph: Graph) -> bool:
    """Return whether offsets name bytes of what begins where a slice does, in a graph or in one it calls."""
    return _walk(graph, (), ())[0]


def _walk(graph: Graph, given: Collection[int], callers: tuple[Graph, ...]) -> tuple[bool, set[int]]:
    """Return whether any is named, and which results begin where a slice does.

    Args:
        graph: the graph.
        given: the placeholders that do.
        callers: the graphs that are walked at the moment; one that calls itself stays functional.
    """
    if graph in callers:
        return False, set()
    placeholders = graph.find_nodes(op="placeholder")
    adrift: set[Node] = {placeholders[i] for i in given}
    is_named = False
    for node in graph.nodes:
        call = higher_order.call_of(node)
        if call is not None:
            inside, is_adrift = _called(call, adrift, (*callers, graph))
            is_named = is_named or inside
            if is_adrift:
                adrift.add(node)
        elif not adrift.isdisjoint(node.all_input_nodes):
            is_named = is_named or goes_by_beginning(node)
            if hands_on(node.target):
                adrift.add(node)
    ends = graph.find_nodes(op="output")
    if not ends:
        return is_named, set()  # who plans it says so
    returned = higher_order.outputs(graph)
    if returned is None:  # nested: which one it is does not matter, for such a subgraph stays functional
        returned = list(ends[0].all_input_nodes)
    return is_named, {i for i, node in enumerate(returned) if node in adrift}


def _called(
    call: higher_order.Call, adrift: Collection[Node], callers: tuple[Graph, ...]
) -> tuple[bool, bool]:
    """Return whether any is named inside a call, and whether a result begins where a slice does."""
    is_named = is_adrift = False
    carried: set[int] = set()

    def given(body: higher_order.Body) -> set[int]:
        values = enumerate(map(call.value, body.operands))
        loose = {i for i, value in values if isinstance(value, Node) and value in adrift}
        return loose | body.sliced | carried

    for body in call.bodies:
        while True:
            inside, returned = _walk(body.module.graph, given(body), callers)
            is_named = is_named or inside
            is_adrift = is_adrift or any(not call.is_stacked(i) for i in returned)
            more = {i for i in returned if i < call.carried} - carried
            if not more:
                break
            carried |= more
    tested = any(_walk(body.module.graph, given(body), callers)[0] for body in call.tests)
    return is_named or tested, is_adrift
