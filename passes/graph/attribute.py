"""What ``get_attr`` nodes take from the module that owns their graph."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from .. import _torch


def value(node: Node) -> Any:
    """Return what a ``get_attr`` node takes from its module; ``None`` for nothing, or a subgraph."""
    found: Any = node.graph.owning_module
    for part in str(node.target).split("."):
        found = getattr(found, part, None)
    return None if isinstance(found, GraphModule) else found


def keys(node: Node) -> list[int | str | None]:
    """Return what two nodes have in common that take the same bytes from the module, whatever fakes say."""
    found = value(node)
    real = _torch.storage_key(found) if isinstance(found, torch.Tensor) else None
    return [str(node.target), real]
