"""``split(cat([a, b]))`` is ``a`` and ``b``, in the dtype of the whole, where nobody sees the whole.

Inductor's rule returns what was put together in its own dtype, whoever shares its storage and writes it. A
part that lies in another way than its piece is copied.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from .. import _torch
from ..graph.alias import alias_of, is_view, uses, written
from ..graph.journal import erase
from ..memory.region import is_static
from ..ops.schema import argument, is_operator, schema_of, target_name, tensors
from ..ops.true_strides import has_usual_strides, may_be_mistold
from .ground import Ground, is_plain, is_split
from .rule import Places, Rule, by_name

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims
_SHOWN = "the whole is returned"
_ELSEWHERE = "a part is laid out in another way"
_CONTIGUOUS = {"memory_format": torch.contiguous_format}
_Copies = dict[Node, dict[str, Any]]  # which parts are copied, and how


def _rewrite(graph: Graph) -> Places:
    ground = Ground(graph)
    for split in list(filter(is_split, graph.nodes)):
        parts = _parts(split)
        if not parts:
            continue
        copies = _Copies()
        why = _why_not(ground, split, parts) or _why_not_laid_out(ground, split, parts, copies)
        # No use of a piece may come behind a write into what it is then, nor write it. One of another dtype
        # is converted, and so a copy still.
        cat = split.all_input_nodes[0]
        same = [part for part in parts if not why and part not in copies and _shares(part, cat)]
        if not why and not ground.sharing.unite(cat, *same):
            why = "a part is written, or seen, while the pieces are in use"
        yield split.name, split if why else None, why
        if not why:
            _replace(ground, split, parts, copies)


def _shares(part: Node, cat: Node) -> bool:
    return _dtype(part) == _dtype(cat) and not _is_empty(part.meta["val"])


def _dtype(node: Node) -> torch.dtype:
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def _parts(split: Node) -> Sequence[Node]:
    """Return what is put together to be split right away, into as many pieces."""
    cat = split.all_input_nodes[0]
    if cat.target is not aten.cat.default or len(cat.users) > 1:
        return ()
    parts: Any = argument(cat, "tensors")
    return parts if len(parts) == len(split.meta["val"]) else ()


def _why_not(ground: Ground, split: Node, parts: Sequence[Node]) -> str:
    """Return why the pieces are not what was put together, empty where they are."""
    whole: Any = split.all_input_nodes[0].meta.get("val")
    values: list[Any] = [part.meta.get("val") for part in parts]
    if not all(map(is_plain, [whole, *values])):
        return "a part is no plain tensor"
    # An operand of another rank is an empty one of the kind that `cat` skips. Pieces that have the shapes
    # of the parts are cut at the same dimension, or empty.
    for value, piece in zip(values, split.meta["val"], strict=True):
        if value.dim() != piece.dim() or not all(map(ground.geometry.equal, value.shape, piece.shape)):
            return "the pieces are cut elsewhere"
    found = list(uses(split))
    for user, name in found:
        if user.target is not operator.getitem and user.op != "output" and (why := _told_by(user, name)):
            return why
    # What is empty shares nothing. One piece that is returned is seen with no other, and lies as its part.
    shown = [name for user, name in found if user.op == "output" and not _is_empty(name.meta["val"])]
    pieces = {_piece(name, split) for name in shown}
    return _SHOWN if len(pieces) > 1 or not all(map(_is_usual, pieces)) else ""


def _piece(name: Node, split: Node) -> Node | None:
    """Return the piece that a value is, or is a view of; of all pieces together none."""
    while name is not split and name not in split.users:
        name = alias_of(name)  # type: ignore[assignment]
    return None if name is split else name


def _is_usual(piece: Node | None) -> bool:
    return piece is not None and has_usual_strides(piece.meta["val"])


def _told_by(user: Node, name: Node) -> str:
    """Return what a user can tell of where its operand lies, empty where nothing."""
    if not is_operator(user.target):
        return f"{target_name(user.target)} may ask where it lies"
    schema = schema_of(user.target)
    if schema.name.partition("::")[0] not in ("aten", "prims") or schema.hides_alias or name in written(user):
        return f"{schema.name} may ask where it lies"
    asks = schema.by_strides or schema.names_offset or schema.asks_offset or schema.asks_strides
    return f"{schema.name} asks where it lies" if asks or schema.hides_accesses else ""


def _why_not_laid_out(ground: Ground, split: Node, parts: Sequence[Node], copies: _Copies) -> str:
    """Return why users would tell the parts, or copies of them, from the pieces; notes which are copied.

    Operators lay out what they make of a row-major tensor alike, whether it has gaps or none. What they make
    of another one is made once to see.
    """
    whole = split.all_input_nodes[0].meta["val"]
    if _is_row_major(whole):
        copies.update((part, _CONTIGUOUS) for part in parts if not _is_row_major(part.meta["val"]))
        return ""
    if not all(map(is_static, [whole, *(part.meta["val"] for part in parts)])):
        return _ELSEWHERE
    clone, mode = aten.clone.default, ground.emitter.fake_mode
    dense = [_torch.run_fake(mode, clone, (piece,), {}) for piece in split.meta["val"]]
    for part, value in zip(parts, dense, strict=True):
        val = part.meta["val"]
        if val.stride() != value.stride():
            copies[part] = {}
            val = _torch.run_fake(mode, clone, (val,), {})
        if val.stride() != value.stride() or val.dtype != value.dtype:
            return _ELSEWHERE
    values = {piece: dense[piece.args[1]] for piece in split.users}  # type: ignore[index]
    users = {user for user, name in uses(split) if name is not split}
    return "" if all(_makes_the_same(mode, user, values) for user in users) else _ELSEWHERE


def _is_row_major(val: torch.Tensor) -> bool:
    """Return whether elements follow each other row by row, if there are any."""
    return has_usual_strides(val) or _is_empty(val)


def _is_empty(val: Any) -> bool:
    return isinstance(val, torch.Tensor) and any(isinstance(n, int) and n == 0 for n in val.shape)


def _makes_the_same(mode: Any, user: Node, values: dict[Node, Any]) -> bool:
    """Return whether a call lays out its results as it did when it is given other values."""
    if user.op != "call_function" or is_view(user) or may_be_mistold(user.target):
        return False
    args, kwargs = map_arg((user.args, user.kwargs), lambda n: values.get(n, n.meta.get("val")))
    made = _torch.run_fake(mode, user.target, args, kwargs)
    return [t.stride() for t in tensors(made)] == [t.stride() for t in tensors(user.meta.get("val"))]


def _replace(ground: Ground, split: Node, parts: Sequence[Node], copies: _Copies) -> None:
    """Put the parts in the places of the pieces, converted and copied where they were put together."""
    cat = split.all_input_nodes[0]
    dtype, emit = _dtype(cat), ground.emitter.view
    for piece in list(split.users):
        index: Any = piece.args[1]
        part = source = parts[index]
        if _dtype(part) != dtype:
            part = emit(cat, prims.convert_element_type.default, (part, dtype))
        if source in copies:
            part = emit(cat, aten.clone.default, (part,), copies[source])
        if part is not source:
            ground.sharing.stands_for(part, cat)
        ground.replace(piece, part)
    erase(split.graph, [cat, split])


RULE = Rule("split_of_cat", _rewrite, lambda split: by_name(split, "dim"))
