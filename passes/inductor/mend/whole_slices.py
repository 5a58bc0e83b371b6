"""Slices of all of a buffer, up to a symbol: Inductor takes such a slice for the buffer itself.

Of a buffer that is copied into as a whole it keeps nothing, and has what was copied in its place. What was
stored into a view before, and is computed later, is then stored into that instead, over what it holds, in
strides that it does not have. A view by strides is a part to Inductor, whatever it is of.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from ...graph.emit import Emitter
from ...memory.region import as_size
from ..defects import defended

aten: Any = torch.ops.aten


def keep(graph: Graph) -> int:
    """Have what is copied into a slice of all of a buffer stored into that buffer; returns how often."""
    copies = graph.find_nodes(op="call_function", target=aten.copy_.default)
    found = [(copy, buffer) for copy in copies if (buffer := _whole(copy.args[0])) is not None]
    if not found or not defended("whole-slice"):
        return 0
    emitter = Emitter(graph)
    for copy, buffer in found:
        sizes, strides = (
            [emitter.symbol(copy, buffer, kind, d) for d in range(buffer.meta["val"].dim())]
            for kind in ("sym_size", "sym_stride")
        )
        copy.update_arg(0, emitter.view(copy, aten.as_strided.default, (buffer, sizes, strides, 0)))
    return len(found)


def _whole(node: Any) -> Node | None:
    """Return the buffer that slices are all of, ``None`` where they are part of one, or of an input."""
    buffer = node
    while buffer.target is aten.slice.Tensor and _layout(buffer) == _layout(buffer.args[0]):
        buffer = buffer.args[0]
    is_made = buffer.op == "call_function" and buffer.target is aten.empty_strided.default
    return buffer if is_made and buffer is not node else None


def _layout(node: Node) -> tuple[Any, ...]:
    val = node.meta["val"]
    return tuple(map(as_size, (*val.size(), *val.stride(), val.storage_offset())))
