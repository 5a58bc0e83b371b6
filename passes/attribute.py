"""What ``get_attr`` nodes take from the module that owns their graph."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from . import _torch, hop


def value(node: Node) -> Any:
    """Return what a ``get_attr`` node takes from its module; ``None`` for nothing, or a subgraph."""
    found: Any = node.graph.owning_module
    for part in str(node.target).split("."):
        found = getattr(found, part, None)
    return None if isinstance(found, GraphModule) else found


def held_inside(graph: Graph) -> frozenset[int | None]:
    """Return the storages of tensors that called subgraphs take from modules of their own."""
    found: set[int | None] = set()
    pending, seen = [graph], {id(graph)}
    while pending:
        one = pending.pop()
        for node in one.find_nodes(op="get_attr", sort=False):
            module = hop.subgraph(one, node)
            own = value(node) if module is None and one is not graph else None
            if isinstance(own, torch.Tensor):
                found.add(_torch.storage_key(own))
            elif module is not None and id(module.graph) not in seen:
                seen.add(id(module.graph))
                pending.append(module.graph)
    return frozenset(found - {None})


def keys(node: Node) -> list[int | str | None]:
    """Return what two nodes have in common that take the same bytes from the module, whatever fakes say."""
    found = value(node)
    real = _torch.storage_key(found) if isinstance(found, torch.Tensor) else None
    return [str(node.target), real]
