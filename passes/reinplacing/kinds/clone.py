"""Explicit clones, and functional copies of a source: writes of nothing."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from ...memory.region import Region, as_size, is_static
from ...ops.schema import schema_of
from ...reason import Reason
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..facts.place import Place
from ..layout import exchange
from ..write.rewriter import Rewriter
from . import record
from .record import add

CLONE = Kind(is_copy=True, is_clone=True, hands_on=True, clones_early=True, begins="anywhere")
COPY = Kind(is_copy=True, hands_on=True, begins="anywhere")


def sees_to(node: Node) -> bool:
    """Return whether a node copies its operand, and nothing else."""
    return schema_of(node.target).is_copy


def is_conversion(node: Node) -> bool:
    """Return whether a clone is surely made for the sake of another layout, and so is no candidate."""
    operand = node.args[0] if node.args else None
    old: Any = operand.meta.get("val") if isinstance(operand, Node) else None
    new: Any = node.meta.get("val")
    if not _converts(node) or not isinstance(old, torch.Tensor) or not isinstance(new, torch.Tensor):
        return False
    if not is_static(old) or not is_static(new):
        return False
    layout = zip(new.size(), old.stride(), new.stride(), strict=True)
    return any(n > 1 and step != other for n, step, other in layout)


def visit(model: Model, node: Node) -> bool:
    """Add the candidate of a copy; returns whether ``node`` is one."""
    is_clone = schema_of(node.target).name == "aten::clone"
    return _visit_clone(model, node) if is_clone else _visit_copy(model, node)


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Let what is copied stand for the copy, where it may."""
    if rewriter.is_in_place(candidates[0]):
        rewriter.replace(node, node.args[candidates[0].slot])  # type: ignore[index]


def _visit_clone(model: Model, node: Node) -> bool:
    """Add an explicit clone; one that is made for the sake of another layout is a conversion, no clone."""
    operand, place = record.own_operand(model, node)
    result = model.fresh(node, node.meta["val"])
    if place is None or not isinstance(result, Place):
        return False
    converts = _converts(node)
    was_alike = model.geometry.same_layout(Region.of(operand.meta["val"]), result.region)
    settled = exchange.settle(model, operand, node if was_alike or not converts else None, result)
    # What strides a view without elements has is not told, and a conversion makes those that are asked for.
    if (settled[1] is not None and not was_alike) or (converts and 0 in result.region.sizes):
        return False
    model.values[node] = exchange.value(model, node, settled[0], result)
    add(model, CLONE, node, 0, (("aten::clone", "self"),), operand, settled, (), ())
    return True


def _converts(node: Node) -> bool:
    return node.kwargs.get("memory_format") not in (None, torch.preserve_format)


def _visit_copy(model: Model, node: Node) -> bool:
    """Add a functional ``copy``: what functionalization makes of an assignment, a clone of its source.

    Nothing of ``self`` is read but its shape and strides.
    """
    source = node.args[1] if len(node.args) > 1 else None
    place, like = model.place(source), record.own_operand(model, node)[1]
    result = model.fresh(node, node.meta["val"])
    if place is None or like is None or not isinstance(source, Node) or not isinstance(result, Place):
        return False
    stays = model.layouts.of(node).is_located and as_size(like.value.storage_offset()) != 0
    if stays:
        # It begins where ``self`` does, and its fake value says otherwise: where its views lie is not known.
        result.storage.close(Reason.LAYOUT, node)
    alike = model.geometry.same_layout(place.region, result.region)
    if place.value.dtype == result.value.dtype and (alike or place.storage.relaid):
        fixed = (result.storage, Reason.LAYOUT)
        # Where only strides of dimensions of one differ, whoever looks at them is asked.
        settled = fixed if stays else exchange.settle(model, source, node if alike else None, result)
        model.values[node] = exchange.value(model, node, settled[0], result)
        add(model, COPY, node, 1, (("aten::copy", "src"),), source, settled, (), ())
    else:
        model.add_read(node, place)
        model.values[node] = result
    return True
