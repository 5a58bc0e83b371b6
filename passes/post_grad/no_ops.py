"""Drops what changes nothing, in the place of Inductor's own no-op removal, which is switched off.

A view that is its operand goes, and so does a copy, unless it keeps two values apart:

* two outputs, or an output and an input, would begin to share storage;
* what is copied is written while the copy is still wanted: by an epilogue, or by what may be put in place
  and would have to copy more.

What stays is an ordinary ``aten.clone``, which patterns know and the partitioner may compute again: nothing
is hidden from them, and nothing that could be dropped stands in their way. Who shares storage with whom is
asked anew after each removal. Arithmetic with constants that changes nothing (``x + zeros``) Inductor folds
away after us: where that would bring two values together, a clone is put behind it, unless ``neutral`` has
seen to it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from ..graph.alias import is_view
from ..graph.emit import is_dense
from ..ops.identities import handed_on
from ..ops.schema import traits_of
from .ground import Ground, views_of
from .rule import Places, Rule

aten: Any = torch.ops.aten


def remove(graph: Graph, *, folds: bool = True) -> None:
    """Drop views and copies that change nothing and keep nothing apart; what stays is an ``aten.clone``.

    Args:
        graph: the graph of the joint stage, in which forward and backward may be.
        folds: whether Inductor folds arithmetic with constants next.
    """
    for _ in _removed(graph, is_joint=True, folds=folds):
        pass


def _removed(graph: Graph, *, is_joint: bool = False, folds: bool = False) -> Places:
    ground = Ground(graph, is_joint=is_joint)
    for node in list(graph.nodes):
        source = handed_on(node)
        operand = source or (folded(node) if folds else None)
        if operand is None or not ground.alike(node, operand, is_laid_out=source is not None):
            continue
        goes = is_view(node) or ground.unite(node, operand)
        if source is None:
            if not goes:
                _copy_behind(ground, node)
        elif goes:
            yield node.name, None, ""
            ground.replace(node, source)
        else:
            yield node.name, node, "it keeps two values apart"
            if is_dense(source.meta["val"]):
                node.target, node.args, node.kwargs = aten.clone.default, (source,), {}


def folded(node: Node) -> Node | None:
    """Return the operand that Inductor may put in the place of a node whose other one is a constant."""
    if traits_of(node.target).neutral is None:
        return None
    given = node.args[:2]
    varying = [n for n in given if isinstance(n, Node) and not _is_constant(n)]
    numbers = [n for n in given if not isinstance(n, Node)]  # torch 2.15 folds those, too
    is_pair = len(given) == 2 and all(n == traits_of(node.target).neutral for n in numbers)
    return varying[0] if len(varying) == 1 and is_pair else None


def _is_constant(node: Node) -> bool:
    """Return whether a value is made of nothing in a few steps."""
    pending, seen = [node], 0
    while pending and seen < 16:
        node = pending.pop()
        seen += 1
        if node.op == "placeholder":
            return False
        pending.extend(node.all_input_nodes)
    return not pending


def _copy_behind(ground: Ground, node: Node) -> None:
    """Let all users of a node use a copy of it."""
    users, views = list(node.users), views_of(node)
    copy = ground.emitter.view(node.next, aten.clone.default, (node,))  # arithmetic gives no gaps to keep
    ground.sharing.stands_for(copy, node)
    for user in users:
        user.replace_input_with(node, copy)
    ground.revalue(views)


RULE = Rule("no_ops", _removed)
