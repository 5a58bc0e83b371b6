"""Buffers that Inductor must be told are written, because it takes what they are made of for what they hold.

A buffer that is computed of nothing in memory (``full``, ``arange``, ``empty``) Inductor does not load where
it is read: it computes the elements again. It does load what it knows to be written, but that an in-place
operator of ATen writes it does not note where it calls a kernel (a ``FallbackKernel`` that returns what it
wrote). ``x = torch.zeros(8); x.masked_scatter_(m, v); y = x * 2`` would make ``y`` of zeros. So no element
at all of such a buffer is filled before: that it notes, and makes no code of.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from ...graph.alias import base_of
from ...graph.emit import Emitter
from ...ops.computed import has_code
from ...ops.schema import argument, is_operator, schema_of
from ..defects import defended
from ..lowering import is_of_nothing

aten: Any = torch.ops.aten


def mark(graph: Graph) -> int:
    """Note the buffers of a graph that Inductor would not see to be written; returns how many."""
    if not defended("unseen-write"):
        return 0
    unseen = {node: operand for node in graph.nodes if (operand := _written_unseen(node)) is not None}
    if not unseen:
        return 0
    computed: dict[Node, bool] = {}
    written: dict[Node, Node] = {}
    for node in graph.nodes:
        computed[node] = is_of_nothing(node, computed)
    for node, operand in unseen.items():
        if computed[operand] and not operand.meta["val"].is_complex():
            written.setdefault(base_of(operand), node)
    emitter = Emitter(graph)
    for buffer, before in written.items():
        nothing = emitter.view(before, aten.as_strided.default, (buffer, [0], [1], 0))
        filled = emitter.call(before, aten.fill_.Scalar, (nothing, 0))
        filled.meta["val"] = nothing.meta["val"]
    return len(written)


def _written_unseen(node: Node) -> Node | None:
    """Return what a node writes that returns it and that Inductor calls a kernel for."""
    if node.op != "call_function" or not is_operator(node.target):
        return None
    schema = schema_of(node.target)
    if schema.mutable != schema.names[:1] or schema.returns != schema.mutable:
        return None
    if has_code(node.target):
        return None
    operand = argument(node, schema.mutable[0])
    return operand if isinstance(operand, Node) else None
