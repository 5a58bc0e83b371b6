"""``split(cat([a, b]))`` is ``a`` and ``b``, in the dtype of the whole, where nobody sees the whole.

Inductor's rule returns what was put together in its own dtype, whoever shares its storage and writes it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Graph, Node

from ..graph.alias import uses, written
from ..graph.journal import erase
from ..ops.schema import argument, is_operator, schema_of, target_name
from ..ops.true_strides import has_usual_strides
from .ground import Ground, is_plain, is_split
from .rule import Places, Rule, by_name

aten: Any = torch.ops.aten


def _rewrite(graph: Graph) -> Places:
    ground = Ground(graph)
    for split in list(filter(is_split, graph.nodes)):
        parts = _parts(split)
        if not parts:
            continue
        why = _why_not(ground, split, parts)
        yield split.name, split if why else None, why
        if not why:
            _replace(ground, split, parts)


def _parts(split: Node) -> Sequence[Node]:
    """Return what is put together to be split right away, into as many pieces."""
    cat = split.all_input_nodes[0]
    if cat.target is not aten.cat.default or len(cat.users) > 1:
        return ()
    parts: Any = argument(cat, "tensors")
    return parts if len(parts) == len(split.meta["val"]) else ()


def _why_not(ground: Ground, split: Node, parts: Sequence[Node]) -> str:
    """Return why the pieces are not what was put together, empty where they are."""
    cat = split.all_input_nodes[0]
    whole: Any = cat.meta.get("val")
    values: list[Any] = [part.meta.get("val") for part in parts]
    if not all(map(is_plain, [whole, *values])):
        return "a part is no plain tensor"
    # An operand of another rank is an empty one of the kind that `cat` skips. Pieces that have the shapes
    # of the parts are cut at the same dimension, or empty.
    for value, piece in zip(values, split.meta["val"], strict=True):
        if value.dim() != piece.dim() or not all(map(ground.geometry.equal, value.shape, piece.shape)):
            return "the pieces are cut elsewhere"
    # Operators lay out what they make of a row-major tensor alike, whether it has gaps or none.
    if not all(map(has_usual_strides, [whole, *values])):
        return "a part is laid out in another way"
    for user, name in uses(split):
        if user.target is not operator.getitem and (why := _told_by(user, name)):
            return why
    # No use of a piece may come behind a write into what it is then, nor write it. One of another dtype is
    # converted, and so a copy still.
    same = [part for part, value in zip(parts, values, strict=True) if value.dtype == whole.dtype]
    return "" if ground.sharing.unite(cat, *same) else "a part is written while the pieces are in use"


def _told_by(user: Node, name: Node) -> str:
    """Return what a user can tell of where its operand lies, empty where nothing."""
    if user.op == "output":
        return "the whole is returned"
    if not is_operator(user.target):
        return f"{target_name(user.target)} may ask where it lies"
    schema = schema_of(user.target)
    if schema.name.partition("::")[0] not in ("aten", "prims") or schema.hides_alias or name in written(user):
        return f"{schema.name} may ask where it lies"
    asks = schema.by_strides or schema.names_offset or schema.asks_offset or schema.asks_strides
    return f"{schema.name} asks where it lies" if asks or schema.hides_accesses else ""


def _replace(ground: Ground, split: Node, parts: Sequence[Node]) -> None:
    """Put the parts in the places of the pieces; they are converted where they were put together."""
    cat = split.all_input_nodes[0]
    dtype = cat.meta["val"].dtype
    for piece in list(split.users):
        index: Any = piece.args[1]
        part = parts[index]
        if part.meta["val"].dtype != dtype:
            convert = torch.ops.prims.convert_element_type.default
            part = ground.emitter.view(cat, convert, (part, dtype))
            ground.sharing.stands_for(part, cat)
        ground.replace(piece, part)
    erase(split.graph, [cat, split])


RULE = Rule("split_of_cat", _rewrite, lambda split: by_name(split, "dim"))
