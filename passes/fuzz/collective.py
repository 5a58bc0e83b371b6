"""Random asynchronous collectives; ``verify/collectives.py`` runs them without a process group."""

from __future__ import annotations

import torch
from torch.fx import Node

from .. import _torch
from .builder import GraphBuilder
from .draws import Draws

_GROUP = "reinplace"


def is_possible() -> bool:
    """Return whether this torch has collectives."""
    return torch.distributed.is_available()


def start(builder: GraphBuilder, draws: Draws, node: Node) -> Node:
    """Add a collective over a node, which has dimensions and elements; its result is to be waited for."""
    even = node.meta["val"].shape[0] % 2 == 0
    kinds = ("all_reduce", "all_reduce", "all_gather", "broadcast", *(("reduce_scatter",) if even else ()))
    kind = draws.of(kinds)
    if kind == "all_gather":
        return builder.call(_torch.collective("all_gather_into_tensor"), node, 2, _GROUP)
    if kind == "reduce_scatter":
        return builder.call(_torch.collective("reduce_scatter_tensor"), node, "sum", 2, _GROUP)
    if kind == "broadcast":
        return builder.call(_torch.collective("broadcast"), node, 0, _GROUP)
    return builder.call(_torch.collective("all_reduce"), node, "sum", _GROUP)


def wait(builder: GraphBuilder, started: Node) -> Node:
    """Add the wait for a collective."""
    return builder.call(_torch.collective("wait_tensor"), started)
