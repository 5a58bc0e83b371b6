"""Operators over lists that Inductor computes by itself, and the elements that they compute."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Node

from .. import _torch


def is_list(node: Node) -> bool:
    """Return whether a node computes a list in one kernel with others like it."""
    return node.op == "call_function" and _torch.is_lowered_as_list(node.target)


def maker(node: Any) -> Node | None:
    """Return the operator over lists that a value is an element of; ``None`` for any other value."""
    made_by = node.args[0] if isinstance(node, Node) and node.target is operator.getitem else None
    return made_by if isinstance(made_by, Node) and is_list(made_by) else None


def is_unstored(node: Node) -> bool:
    """Return whether Inductor puts no element of a list into memory: only such operators use them."""
    users = (u for element in node.users for u in (element.users if maker(element) else (element,)))
    return all(map(is_list, users))


def inputs_of(node: Node) -> Iterator[Node]:
    """Yield what an element is computed from: its own part of each list, and what all elements share."""
    made_by: Any = maker(node)
    index: Any = node.args[1]
    yield from parts(made_by, index)


def parts(made_by: Node, index: int) -> Iterator[Node]:
    """Yield what an operator over lists computes one element from."""
    for value in (*made_by.args, *made_by.kwargs.values()):
        mine = value[index] if isinstance(value, list | tuple) else value  # all lists are as long
        if isinstance(mine, Node):
            yield mine


def has_blocks(value: torch.Tensor) -> bool:
    """Return whether an element like this is computed in blocks of a kernel for its list."""
    if not value.is_cuda:
        return False
    is_static = all(isinstance(size, int) for size in value.shape)
    return is_static or bool(_torch.inductor_setting("combo_kernel_foreach_dynamic_shapes"))
