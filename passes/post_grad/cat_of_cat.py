"""``cat([cat([a, b]), its first part])`` is one concatenation, where that part lies within ``a``.

Inductor's rule does not ask whether ``a`` has that dimension, and decides about symbolic sizes by a guard.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from ..graph.journal import erase
from ..memory.region import as_size
from ..ops.schema import argument
from ..ops.true_strides import has_usual_strides
from .ground import Ground, dim_of, is_plain
from .rule import Places, Rule, by_name

aten: Any = torch.ops.aten


def _rewrite(graph: Graph) -> Places:
    ground = Ground(graph)
    for outer in list(graph.find_nodes(op="call_function", target=aten.cat.default)):
        found = _inner(outer)
        if found is None:
            continue
        inner, part = found
        why = _why_not(ground, outer, inner, part)
        yield outer.name, part if why else None, why
        if not why:
            parts: Any = argument(inner, "tensors")
            dim, end = argument(outer, "dim") or 0, argument(part, "end")
            first = ground.emitter.view(outer, aten.slice.Tensor, (parts[0], dim, 0, end))
            ground.sharing.stands_for(first, parts[0])
            outer.args, outer.kwargs = ([*parts, first], dim), {}
            erase(graph, [inner, part])


def _inner(outer: Node) -> tuple[Node, Node] | None:
    """Return a concatenation and its first part, if they are put together again and used for nothing else."""
    parts: Any = argument(outer, "tensors")
    if len(parts) != 2 or not all(isinstance(n, Node) for n in parts):
        return None
    inner, part = parts
    if inner.target is not aten.cat.default or part.target is not aten.slice.Tensor:
        return None
    if set(inner.users) != {outer, part} or set(part.users) != {outer}:
        return None
    rank = outer.meta["val"].dim() if is_plain(outer.meta.get("val")) else 0
    dims = {dim_of(node, rank) for node in (outer, inner, part)}
    starts = argument(part, "start") in (None, 0) and argument(part, "step") in (None, 1)
    return (inner, part) if rank and len(dims) == 1 and starts else None


def _why_not(ground: Ground, outer: Node, inner: Node, part: Node) -> str:
    """Return why the first part is not one of the first operand, empty where it is."""
    parts: Any = argument(inner, "tensors")
    val = outer.meta["val"]
    if not all(isinstance(n, Node) and is_plain(n.meta.get("val")) for n in (*parts, part)):
        return "a part is no plain tensor"
    first = parts[0].meta["val"]
    if first.dim() != val.dim():  # an empty one, which `cat` skips
        return "the first operand has other dimensions"
    end: Any = argument(part, "end")
    size, dim = end.meta["val"] if isinstance(end, Node) else end, dim_of(outer, val.dim())
    if size is None or not ground.geometry.at_most(0, as_size(size)):
        return "how long the first part is is not known"
    if not ground.geometry.at_most(as_size(size), as_size(first.shape[dim])):
        return "the first part may be longer than the first operand"
    if not all(has_usual_strides(n.meta["val"]) for n in (*parts, inner, outer)):
        return "an operand is laid out in another way"
    # What was read for the inner one is read for the outer one now.
    if any(ground.sharing.is_written(n, inner, outer) for n in parts):
        return "an operand is written in between"
    return ""


RULE = Rule("cat_of_cat", _rewrite, lambda part: by_name(part, "end"))
