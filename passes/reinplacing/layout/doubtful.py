"""What may lie otherwise than its fake value says: strides that are not told, and hidden beginnings."""

from __future__ import annotations

import itertools

import torch
from torch.fx import Graph, Node

from ...graph import subgraphs
from ...graph.subgraphs import graphs, names_offsets
from ...memory.region import as_size
from ...ops import higher_order
from ...ops.true_strides import is_mistold
from ...ops.views import VIEWS, is_expanded
from ..facts import asked
from ..facts.calls import Strides
from . import hidden_alias, slices, unit_strides


def are_hidden(graph: Graph, *, lowered: bool = False) -> bool:
    """Return whether offsets name bytes of what may begin elsewhere than a graph says.

    What is moved to the device where it is remains where it is, and the graph says that it is a copy; what is
    made of a slice begins where that does, and so does a view scatter, but not inside Inductor, which makes
    memory for it. Then offsets, in a graph or in one that it calls, name other bytes than they say, and no
    copy may be another.
    """
    called = list(graphs(graph))
    if not lowered and any(map(displaced, called)):
        return names_offsets(graph)
    pairs = itertools.product(called, hidden_alias.OPERATORS)
    handing = (n for one, target in pairs for n in one.find_nodes(op="call_function", target=target))
    if any(map(is_mistold, handing)):
        return names_offsets(graph)
    is_sliced = any(body.sliced for one in called for call in higher_order.calls(one) for body in call.bodies)
    return is_sliced and names_offsets(graph) and slices.names_adrift(graph)


def doubtful_strides(root: Graph) -> Strides:
    """Return which values of a graph and of those it calls may have other strides than is told."""
    graphs = list(subgraphs.graphs(root))
    return Strides(asked.untold_in(graphs), unit_strides.guessed(graphs))


def displaced(graph: Graph) -> frozenset[Node]:
    """Return the view scatters that begin where their operands do, and whose fake values say something else.

    Torch's kernels copy the storage as it is; fake tensors come from a decomposition, or from a cache.
    """
    targets = (getattr(torch.ops.aten, name.removeprefix("aten::")).default for name in VIEWS)
    found = (n for t in targets for n in graph.find_nodes(op="call_function", target=t, sort=False))
    return frozenset(filter(_is_displaced, found))


def _is_displaced(node: Node) -> bool:
    operand, result = node.args[0] if node.args else None, node.meta.get("val")
    value = operand.meta.get("val") if isinstance(operand, Node) else None
    if not isinstance(value, torch.Tensor) or not isinstance(result, torch.Tensor) or is_expanded(value):
        return False
    return bool(as_size(value.storage_offset()) != as_size(result.storage_offset()))
