"""The higher-order operators that run subgraphs: which subgraph is given which operand, what comes back.

Only calls whose form is known entirely are read: positional operands, subgraphs of the graph's own module.
Every other call is for the caller an operator that is not understood.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from .. import _torch
from .schema import is_operator

Slot = tuple[int, int | None]  # a positional argument, and the element of it where it is a list


# Higher-order operators whose results never share storage with an operand, and that mutate nothing: their
# operands are read, their results are never written. Of ``strict_mode`` and ``inductor_compiled_code`` torch
# does not ask it.
_PURE = (
    *("flex_attention_backward", "run_and_save_rng_state", "run_with_rng_state"),
    "graphsafe_run_with_rng_state",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Body:
    """A subgraph as one call runs it.

    Args:
        module: the subgraph.
        operands: for each placeholder, where the call holds the value that it is given.
        sliced: the placeholders that are given slices of that value, one after the other.
    """

    module: GraphModule
    operands: tuple[Slot, ...]
    sliced: frozenset[int] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One call of subgraphs.

    Args:
        node: the call.
        bodies: the subgraphs whose outputs are the results of the call, each on its own.
        tests: subgraphs that only decide whether to go on.
        carried: how many results are carried from one iteration to the next; 0 where nothing is.
        stacked: whether results from position ``carried`` on are stacked from what the iterations return.
        may_skip: whether the bodies may run not even once; then carried results are copies.
    """

    node: Node
    bodies: tuple[Body, ...]
    tests: tuple[Body, ...]
    carried: int = 0
    stacked: bool = False
    may_skip: bool = False

    def value(self, slot: Slot) -> Any:
        """Return what the call is given in a slot."""
        position, item = slot
        argument: Any = self.node.args[position]
        return argument if item is None else argument[item]

    def is_stacked(self, result: int) -> bool:
        """Return whether a result is made by stacking."""
        return self.stacked and result >= self.carried


def is_pure(target: Any) -> bool:
    """Return whether a higher-order operator only reads its operands, and returns fresh tensors."""
    return any(target is _torch.hop(name) for name in _PURE)


def subgraph(graph: Graph, node: Any) -> GraphModule | None:
    """Return the subgraph that a ``get_attr`` node names, ``None`` where it names none."""
    if not isinstance(node, Node) or node.op != "get_attr":
        return None
    value: Any = graph.owning_module
    for part in str(node.target).split("."):
        value = getattr(value, part, None)
    return value if isinstance(value, GraphModule) else None


def call_of(node: Node) -> Call | None:
    """Read a call of subgraphs; ``None`` where ``node`` is none or its form is not known."""
    target = node.target
    if node.op != "call_function" or is_operator(target) or target is operator.getitem or node.kwargs:
        return None
    for name, read in _READERS.items():
        if node.target is _torch.hop(name) and node.target is not None:
            call = read(node)
            return call if call is not None and _fits(call) else None
    return None


def calls(graph: Graph) -> Iterator[Call]:
    """Yield the calls of subgraphs in a graph whose form is known."""
    if not graph.find_nodes(op="get_attr", sort=False):
        return  # there is no subgraph to call
    for node in graph.nodes:
        call = call_of(node)
        if call is not None:
            yield call


def _fits(call: Call) -> bool:
    """Return whether every subgraph has a placeholder for each operand."""
    return all(
        len(body.module.graph.find_nodes(op="placeholder")) == len(body.operands)
        for body in (*call.bodies, *call.tests)
    )


def _items(node: Node, position: int) -> list[Slot] | None:
    if len(node.args) <= position or not isinstance(node.args[position], list | tuple):
        return None
    return [(position, i) for i in range(len(node.args[position]))]  # type: ignore[arg-type]


def _cond(node: Node) -> Call | None:
    operands = _items(node, 3)
    modules = [subgraph(node.graph, n) for n in node.args[1:3]]
    if operands is None or len(node.args) != 4 or None in modules:
        return None
    bodies = tuple(Body(m, tuple(operands)) for m in modules if m is not None)
    return Call(node, bodies, ())


def _while_loop(node: Node) -> Call | None:
    carried, captured = _items(node, 2), _items(node, 3)
    if carried is None or captured is None or len(node.args) != 4:
        return None
    test, body = (subgraph(node.graph, n) for n in node.args[:2])
    if test is None or body is None:
        return None
    slots = (*carried, *captured)
    bodies, tests = (Body(body, slots),), (Body(test, slots),)
    return Call(node, bodies, tests, carried=len(carried), may_skip=True)


def _scan(node: Node) -> Call | None:
    init, xs, captured = (_items(node, i) for i in (1, 2, 3))
    body = subgraph(node.graph, node.args[0])
    # Without anything to scan over torch hands the initial values on.
    if init is None or not xs or captured is None or len(node.args) != 4 or body is None:
        return None
    slots = (*init, *xs, *captured)
    sliced = frozenset(range(len(init), len(init) + len(xs)))
    return Call(node, (Body(body, slots, sliced),), (), carried=len(init), stacked=True)


def _map(node: Node) -> Call | None:
    xs, captured = _items(node, 1), _items(node, 2)
    body = subgraph(node.graph, node.args[0])
    if not xs or captured is None or len(node.args) != 3 or body is None:
        return None
    slots = (*xs, *captured)
    sliced = frozenset(range(len(xs)))
    return Call(node, (Body(body, slots, sliced),), (), stacked=True)


def _invoke_subgraph(node: Node) -> Call | None:
    body = subgraph(node.graph, node.args[0]) if node.args else None
    if body is None:
        return None
    slots: tuple[Slot, ...] = tuple((i, None) for i in range(2, len(node.args)))
    return Call(node, (Body(body, slots),), ())


_READERS: dict[str, Callable[[Node], Call | None]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "map_impl": _map,
    "invoke_subgraph": _invoke_subgraph,
}


def outputs(graph: Graph) -> list[Any] | None:
    """Return what a subgraph returns, one value for each result; ``None`` where results are nested."""
    end = next((n for n in reversed(graph.nodes) if n.op == "output"), None)
    found: Any = end.args[0] if end is not None and end.args else None
    if isinstance(found, Node):
        return [found]
    if not isinstance(found, list | tuple) or any(isinstance(o, list | tuple | dict) for o in found):
        return None
    return list(found)


def value_of(node: Any) -> torch.Tensor | None:
    """Return the fake tensor of a node, ``None`` where it has none."""
    val = node.meta.get("val") if isinstance(node, Node) else None
    return val if isinstance(val, torch.Tensor) else None
