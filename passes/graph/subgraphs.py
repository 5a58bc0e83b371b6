"""A graph and those that it calls: which they are, what they take of modules, whether they name offsets."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.fx import Graph

from .. import _torch
from ..ops import higher_order
from ..ops.beginning import goes_by_beginning
from . import attribute


def names_offsets(graph: Graph) -> bool:
    """Return whether a graph, or one that it calls, names bytes by an offset, or asks for one."""
    return any(goes_by_beginning(node) for one in graphs(graph) for node in one.nodes)


def graphs(graph: Graph) -> Iterator[Graph]:
    """Yield a graph and those that it calls, each once."""
    pending, seen = [graph], set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        modules = (higher_order.subgraph(one, node) for node in one.find_nodes(op="get_attr"))
        pending.extend(module.graph for module in modules if module is not None)


def held_inside(graph: Graph) -> frozenset[int | None]:
    """Return the storages of tensors that called subgraphs take from modules of their own."""
    _, *called = graphs(graph)
    taken = (attribute.value(node) for one in called for node in one.find_nodes(op="get_attr", sort=False))
    keys = {_torch.storage_key(value) for value in taken if isinstance(value, torch.Tensor)}
    return frozenset(keys - {None})
