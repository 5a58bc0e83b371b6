"""Offsets of ``as_strided`` into inputs, counted from where Inductor counts them.

An offset names an element of the storage. An input that does not begin where its storage does Inductor gets
by a pointer to its first element, and counts from there (torch 2.11; not 2.13): what is meant is as many
elements before as the input has before it. Where the running torch counts from is tried out once.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from . import _torch
from .realize import is_view
from .schema import argument

aten: Any = torch.ops.aten
log: logging.Logger = logging.getLogger(__name__)


def rebase(graph: Graph) -> int:
    """Count offsets into inputs as Inductor will; returns how many are others now."""
    begins = {node: begin for node in graph.find_nodes(op="placeholder") if (begin := _begin(node))}
    strided = graph.find_nodes(op="call_function", target=aten.as_strided.default) if begins else []
    found = [node for node in strided if _base(node) in begins]
    if not found or not counts_from_inputs():
        return 0
    count = 0
    for node in found:
        base = _base(node)
        offset = argument(node, "storage_offset")
        is_item = node.meta["val"].dtype == base.meta["val"].dtype  # a view of another is a buffer of its own
        relative = offset - begins[base] if isinstance(offset, int) and is_item else -1
        if relative < 0:
            continue  # it is symbolic, or there is none, or what it names lies before the input
        node.args = (node.args[0], argument(node, "size"), argument(node, "stride"), relative)
        node.kwargs = {}
        count += 1
    return count


@functools.cache
def counts_from_inputs() -> bool:
    """Return whether Inductor counts an offset from where an input begins."""
    graph, mode = Graph(), _torch.new_fake_mode()
    with mode:
        given = torch.empty(8)[2:]
        named = torch.as_strided(given, [2], [1], 4)
    node = graph.placeholder("given")
    view = graph.call_function(aten.as_strided.default, (node, [2], [1], 4))
    graph.output((view,))
    node.meta["val"], view.meta["val"] = given, named
    try:
        lowered = _torch.lowered(GraphModule(torch.nn.Module(), graph), mode, given)
        return bool(lowered.get_layout().offset == 4)
    except Exception as error:  # noqa: BLE001  (it works by another way then, and newer ones count right)
        log.debug("where Inductor counts offsets from could not be tried out: %s", error)
        return False


def _begin(node: Node) -> int:
    """Return how many elements of its storage lie before an input."""
    val = node.meta.get("val")
    offset = val.storage_offset() if isinstance(val, torch.Tensor) else 0
    return offset if isinstance(offset, int) else 0


def _base(node: Node) -> Node:
    while is_view(node):
        node = node.all_input_nodes[0]
    return node
