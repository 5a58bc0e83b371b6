"""Windows of a view that do not overlap: a reshaped view of it, which is what Inductor takes them for then.

``aten.unfold`` of a view Inductor makes a view of a box in which there is another view. In which buffer that
lies it cannot tell: a kernel that writes a window is given a copy of it, and where the windows have the shape
that the view had, a kernel that reads them is given the whole buffer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from ...graph.alias import viewed
from ...graph.emit import Emitter
from ...ops.schema import argument
from ..defects import defended

aten: Any = torch.ops.aten


def reshape(graph: Graph) -> int:
    """Write windows of views as reshaped views where they do not overlap; returns how many."""
    found = [n for n in graph.find_nodes(op="call_function", target=aten.unfold.default) if _is_nested(n)]
    if not found or not defended("windows-of-a-view"):
        return 0
    emitter = Emitter(graph)
    for node in found:
        node.replace_all_uses_with(_reshaped(emitter, node))
        graph.erase_node(node)
    return len(found)


def _is_nested(node: Node) -> bool:
    """Return whether a node takes windows of a view that do not overlap, in steps that are all whole."""
    source: Any = node.args[0]
    if viewed(source) is None or not source.meta["val"].dim():
        return False
    at, count, size, step = _layout(node)
    length = source.meta["val"].shape[at]
    is_known = all(isinstance(n, int) for n in (length, count, size, step))
    return is_known and 0 < size <= step and count * step <= length


def _layout(node: Node) -> tuple[int, Any, Any, Any]:
    """Return along which dimension windows are taken, how many, how long, and how far from each other."""
    source: Any = node.args[0]
    at = argument(node, "dimension") % source.meta["val"].dim()
    return at, node.meta["val"].shape[at], argument(node, "size"), argument(node, "step")


def _reshaped(emitter: Emitter, node: Node) -> Node:
    """Insert a view that is what a node is: whole steps, each a row, of which the first elements count."""
    source: Any = node.args[0]
    at, count, size, step = _layout(node)
    sizes = [emitter.symbol(node, source, "sym_size", d) for d in range(source.meta["val"].dim())]
    if count * step < sizes[at]:
        source = emitter.view(node, aten.slice.Tensor, (source, at, 0, count * step))
    split = [*sizes[:at], count, step, *sizes[at + 1 :]]
    rows = emitter.view(node, aten.reshape.default, (source, split))
    order = [d for d in range(len(split)) if d != at + 1] + [at + 1]
    found = emitter.view(node, aten.permute.default, (rows, order))
    return emitter.view(node, aten.slice.Tensor, (found, len(sizes), 0, size)) if size < step else found
