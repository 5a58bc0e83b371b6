"""Wrappers that write real views of complex tensors, given bases of real numbers.

Functionalization does not count ``c.real``, ``c.imag`` and ``view_as_real(c)`` for views of another dtype:
``auto_functionalized_v2`` names them by sizes, strides and an offset in real numbers, and as base the complex
tensor. Inductor refuses to compile that, and taken at its word it writes elsewhere.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from ...graph.emit import Emitter
from ...graph.program_notes import real_views
from ...ops.wrapper import base_views, first_result
from ...ops.wrapper_names import calls_of
from ..defects import defended

aten: Any = torch.ops.aten


def count_in_reals(graph: Graph) -> int:
    """Give wrappers of a joint graph real bases where what they write is real; returns how many bases."""
    if not defended("real-view-of-complex"):
        return 0
    changed = 0
    for node in calls_of(graph, "auto_functionalized_v2"):
        real = real_views(node)
        given: Any = node.kwargs["_all_bases"]
        for index, base in enumerate(given) if real else ():
            written = {view.name for view in base_views(node) if view.base == index}
            if base.meta["val"].is_complex() and written <= real:
                _count(node, index, base)
                changed += 1
    return changed


def _count(node: Node, index: int, base: Node) -> None:
    """Replace one complex base of a wrapper by its real view, and its new value by a complex view of it."""
    emitter = Emitter(node.graph)
    viewed = emitter.view(node, aten.view_as_real.default, (base,))
    bases: Any = node.kwargs["_all_bases"]
    node.kwargs = {**node.kwargs, "_all_bases": [*bases[:index], viewed, *bases[index + 1 :]]}
    position = first_result(node) + index
    if isinstance(node.meta.get("val"), tuple):
        values = list(node.meta["val"])
        values[position] = viewed.meta["val"]
        node.meta["val"] = tuple(values)
    for item in [n for n in node.users if n.target is operator.getitem and n.args[1] == position]:
        users = list(item.users)
        item.meta["val"] = viewed.meta["val"]
        new = emitter.view(item.next, aten.view_as_complex.default, (item,))
        item.replace_all_uses_with(new, delete_user_cb=set(users).__contains__)
