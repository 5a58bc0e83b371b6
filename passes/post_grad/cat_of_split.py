"""``cat(split(x))`` is a copy of ``x``: or ``x`` itself, where nobody can tell.

Inductor's rule takes it for ``x`` itself always, so that an output is an input, or a later write is seen.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from ..graph.alias import viewed
from ..graph.journal import erase
from ..ops.schema import argument
from .ground import Ground, dim_of, is_split
from .rule import Places, Rule, by_name

aten: Any = torch.ops.aten


def _rewrite(graph: Graph) -> Places:
    ground = Ground(graph)
    for cat in list(graph.find_nodes(op="call_function", target=aten.cat.default)):
        source = _split(cat)
        if source is None:
            continue
        pieces = cat.all_input_nodes
        # All parts of a whole, in their order, have its values and its dtype.
        if ground.alike(cat, source) and ground.unite(cat, source):
            yield cat.name, None, ""
            ground.replace(cat, source)
        elif ground.copy(cat, source):
            yield cat.name, None, ""
        else:
            yield cat.name, cat, "the result is laid out in a way of its own"
            continue
        erase(graph, [piece for piece in pieces if not piece.users])


def _split(cat: Node) -> Node | None:
    """Return what a node puts together again, piece by piece, ``None`` where it does not."""
    pieces: Any = argument(cat, "tensors")
    if not pieces or not all(isinstance(p, Node) and p.target is operator.getitem for p in pieces):
        return None
    split = pieces[0].args[0]
    if not is_split(split) or [p.args for p in pieces] != [(split, i) for i in range(len(split.meta["val"]))]:
        return None
    rank = split.meta["val"][0].dim()
    return viewed(split) if dim_of(split, rank) == dim_of(cat, rank) else None


RULE = Rule("cat_of_split", _rewrite, lambda cat: by_name(cat, "dim"))
