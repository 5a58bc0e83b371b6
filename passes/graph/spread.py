"""What is known of a value where it is made, and of all that comes to be of it: in subgraphs, and after them.

A subgraph is planned by itself, once for all of its calls, and on a copy of its graph. What its operands are
like beyond what their fake tensors say is found out before, for a graph and all that it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch.fx import Graph, GraphModule, Node

from ..ops import higher_order

Names = dict[GraphModule | None, frozenset[str]]  # of nodes, by the module of a graph; ``None`` has none


def spread(graphs: Iterable[Graph], is_like: Callable[[Node, set[Node]], bool]) -> Names:
    """Return the names of the nodes that are like some.

    Args:
        graphs: a graph and all those that it calls.
        is_like: whether a node, which calls no subgraph, is to be found where others were. What is given to a
            subgraph is like what it is given, and a call like what its subgraphs return.
    """
    graphs, found, known = list(graphs), set[Node](), -1
    while known != len(found):  # a loop hands on to its next iteration what it made in this one
        known = len(found)
        for node in (node for graph in graphs for node in graph.nodes if node.op == "call_function"):
            call = higher_order.call_of(node)
            if call is not None:
                _cross(call, found)
            elif node not in found and is_like(node, found):
                found.add(node)
    return {g.owning_module: frozenset(n.name for n in g.nodes if n in found) for g in graphs}


def _cross(call: higher_order.Call, found: set[Node]) -> None:
    """Add what a call's subgraphs are given, what they carry to the next iteration, and what they return."""
    for body in (*call.bodies, *call.tests):
        placeholders = body.module.graph.find_nodes(op="placeholder")
        given = zip(placeholders, map(call.value, body.operands), strict=True)
        found.update(placeholder for placeholder, value in given if value in found)
    for body in call.bodies:
        placeholders = body.module.graph.find_nodes(op="placeholder")
        returned = [
            i for i, value in enumerate(higher_order.outputs(body.module.graph) or ()) if value in found
        ]
        found.update(placeholders[i] for i in returned if i < call.carried)
        found.update([call.node] if returned else ())
