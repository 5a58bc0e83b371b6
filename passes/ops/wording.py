"""How errors name a node, and what is said of nodes that are none."""

from __future__ import annotations

from torch.fx import Node

from ..errors import GraphError
from .schema import target_name
from .source import where


def malformed(node: Node, error: Exception) -> GraphError:
    """Return the error for a node that an analysis stumbled over."""
    return GraphError(
        f"expected a node that its operator could run, found {at(node)}: {type(error).__name__}: {error}; "
        "check its arguments and its meta['val']"
    )


def no_value(node: Node) -> GraphError:
    """Return the error for a node without a recorded value."""
    return GraphError(
        f'expected meta["val"] (a FakeTensor) on every tensor node, found none on {at(node)}; trace the '
        'graph with make_fx(tracing_mode="fake") or run FakeTensorProp over it first.'
    )


def at(node: Node) -> str:
    """Return a node as errors name it."""
    target = target_name(node.target) if node.op == "call_function" else str(node.target)
    return f"{node.name} = {target} at {where(node) or 'an unknown line'}"
