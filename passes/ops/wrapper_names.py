"""Which calls functionalization makes of what writes: wrappers of operators, and of Triton kernels."""

from __future__ import annotations

from typing import Any

from torch.fx import Graph, Node

from .. import _torch

# The passes take these apart: what they read and write is what they wrap.
NAMES = ("auto_functionalized", "auto_functionalized_v2", "triton_kernel_wrapper_functional")


def calls_of(graph: Graph, name: str) -> list[Node]:
    """Return a graph's calls of the wrapper of a name; none where this torch has no such operator for us."""
    target = _torch.hop(name)
    return [] if target is None else list(graph.find_nodes(op="call_function", target=target))


def wraps_operator(target: Any) -> bool:
    """Return whether a target is a wrapper that functionalization puts around operators that write."""
    return target is _torch.hop(NAMES[0]) or target is _torch.hop(NAMES[1])


def is_wrapper(target: Any) -> bool:
    """Return whether a target is a wrapper of operators, or of Triton kernels, that write."""
    return wraps_operator(target) or target is _torch.hop(NAMES[2])
