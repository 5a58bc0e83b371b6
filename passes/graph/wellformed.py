"""Whether a graph is one at all: nodes that are made before they are used, one output, code that compiles."""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Graph, Node

from .. import _torch
from ..errors import GraphError
from ..ops.schema import is_operator
from ..ops.wording import at

_PLAIN = (Node, int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device, enum.Enum)


# Operators that Python code writes between their operands; each needs two, but these need one.
_UNARY = frozenset({operator.neg, operator.pos, operator.invert, operator.not_})


def check(graph: Graph) -> None:
    """Check the order of a graph's nodes and its output.

    Raises:
        GraphError: naming the node that is out of place.
    """
    seen: set[Node] = set()
    output: Node | None = None
    for node in graph.nodes:
        if output is not None:
            raise GraphError(f"expected one output node, the last one, found {at(node)} after {output.name}")
        used = node.all_input_nodes
        if not seen.issuperset(used):
            raise _unknown(graph, node, next(n for n in used if n not in seen))
        if node.op == "output":
            if len(node.args) != 1:
                raise GraphError(
                    f"expected one argument of {at(node)}, what is returned, got {len(node.args)}"
                )
            output = node
        elif node.op == "call_function" and not callable(node.target):
            raise GraphError(f"expected a function as target of {node.name}, got {node.target!r}")
        seen.add(node)
    if output is None:
        last = f"the last node is {next(iter(reversed(graph.nodes))).name}" if seen else "it is empty"
        raise GraphError(f"expected a graph with an output node, found none: {last}")


def _unknown(graph: Graph, node: Node, used: Node) -> GraphError:
    problem = "which is made later"
    if used.graph is not graph:
        problem = "a node of another graph"
    elif used not in set(graph.nodes):
        problem = "which was erased from the graph"
    return GraphError(
        f"expected operands that are made before they are used, found {used.name}, {problem}, in {at(node)}"
    )


def check_code(graph: Graph) -> None:
    """Check that the graph can be compiled to Python code: afterwards it is too late to put it back.

    Raises:
        GraphError: naming a node with an argument that no code can be written for.
    """
    for node in graph.nodes:
        if node.op == "call_function" and getattr(node.target, "__module__", "") == "_operator":
            if len(node.args) < (1 if node.target in _UNARY else 2):
                raise GraphError(f"expected more operands for {at(node)}, got {len(node.args)}")
        for leaf in _leaves((node.args, node.kwargs)):
            if not _is_printable(leaf):
                raise GraphError(
                    f"expected arguments that Python code can be written for, got {leaf!r} in {at(node)}"
                )


def _leaves(value: Any) -> Iterator[Any]:
    """Yield what is not a plain value or a node."""
    if isinstance(value, _PLAIN):
        return
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(key)
            yield from _leaves(item)
    elif isinstance(value, slice):
        yield from _leaves((value.start, value.stop, value.step))
    else:
        yield value


def _is_printable(leaf: Any) -> bool:
    if is_operator(leaf) or isinstance(leaf, _torch.higher_order_operator() | torch.Tensor):
        return True
    try:
        compile(repr(leaf), "<argument>", "eval")
    except Exception:  # noqa: BLE001  (code that cannot be parsed, or no text at all)
        return False
    return True
