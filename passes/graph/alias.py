"""What a node is a view of, and who uses it through views."""

from __future__ import annotations

import operator

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from ..memory.region import Size, as_size
from ..ops.schema import is_operator, schema_of


def is_view(node: Node) -> bool:
    """Return whether a node is a view, or one of several, of its first operand."""
    if node.op != "call_function" or not node.all_input_nodes:
        return False
    if node.target is operator.getitem:
        return is_view(node.all_input_nodes[0])
    return is_operator(node.target) and schema_of(node.target).view


def users_through_views(node: Node) -> list[Node]:
    """Return what uses a node, through views."""
    found, pending = list[Node](), list(node.users)
    while pending:
        user = pending.pop()
        found.append(user)
        if is_view(user):
            pending.extend(user.users)
    return found


def begin_of(node: Node) -> Size:
    """Return how many elements of its storage lie before a value."""
    val = node.meta.get("val")
    return as_size(val.storage_offset()) if isinstance(val, torch.Tensor) else 0


def base_of(node: Node) -> Node:
    """Return what a value is a view of."""
    while is_view(node):
        node = node.all_input_nodes[0]
    return node


def leaves(node: Node) -> list[Node]:
    """Return the nodes that a node uses, once for each use."""
    found: list[Node] = []

    def note(leaf: Node) -> Node:
        found.append(leaf)
        return leaf

    map_arg((node.args, node.kwargs), note)
    return found
