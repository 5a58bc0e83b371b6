"""What could be in place in a graph; where that cannot be analysed, by the names of what it calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch.fx import Graph, Node

from .. import _torch
from ..graph.sizes import shape_env_of
from ..memory.region import as_size
from ..ops import wrapper
from ..ops.schema import arguments, is_operator, tensors
from ..ops.source import where
from ..ops.wrapper_names import is_wrapper, wraps_operator
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
        op, size = wrapper.called(node), _bytes(operand)
        yield Outcome(f"{op}.{arg}", op, arg, node.name, reinplaced=False, nbytes=size, source=where(node))


def _written(node: Node) -> Mapping[str, Any]:
    """Return what a call might write in place, by argument: of an operator its first."""
    if node.op != "call_function":
        return {}
    if wraps_operator(node.target):
        return wrapper.operands(node)
    if is_wrapper(node.target):
        kwargs: Any = node.kwargs
        return {name: kwargs["kwargs"][name] for name in kwargs["tensors_to_clone"]}
    return dict(list(arguments(node))[:1]) if is_operator(node.target) else {}


def _bytes(operand: Any) -> int:
    val = operand.meta.get("val") if isinstance(operand, Node) else None
    try:
        env = shape_env_of(operand.graph)
        return sum(_torch.size_hint(env, as_size(tensor.nbytes)) for tensor in tensors(val))
    except Exception:  # noqa: BLE001  (of what is not understood)
        return 0
