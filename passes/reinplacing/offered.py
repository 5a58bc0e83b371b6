"""What could be in place in a graph; where that cannot be analysed, by the names of what it calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch.fx import Graph, Node

from ..graph.sizes import bytes_of
from ..ops import wrapper
from ..ops.schema import arguments, is_operator
from ..ops.source import where
from ..ops.wrapper_names import is_wrapper
from ..report import Outcome
from .facts.options import Options
from .run import analyze_graph


def offered(graph: Graph, options: Options) -> Sequence[Outcome]:
    """Return the candidates of a functional graph; of one that is not understood, all that might be some."""
    try:
        return analyze_graph(graph, options).outcomes
    except Exception:  # noqa: BLE001  (whoever rewrites the graph says so)
        return [outcome for node in graph.nodes for outcome in _by_name(node)]


def _by_name(node: Node) -> Iterator[Outcome]:
    for arg, operand in _written(node).items():
        op, size = wrapper.called(node), bytes_of(operand)
        yield Outcome(f"{op}.{arg}", op, arg, node.name, reinplaced=False, nbytes=size, source=where(node))


def _written(node: Node) -> Mapping[str, Any]:
    """Return what a call might write in place, by argument: of an operator its first."""
    if node.op != "call_function":
        return {}
    if is_wrapper(node.target):
        return wrapper.operands(node)
    return dict(list(arguments(node))[:1]) if is_operator(node.target) else {}
