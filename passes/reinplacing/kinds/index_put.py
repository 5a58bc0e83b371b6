"""Scatters by index: ``index_put``, checked or not."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from ... import _torch
from ...ops.schema import argument, schema_of
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..layout import exchange
from ..write.rewriter import Rewriter
from . import record

aten: Any = torch.ops.aten


KIND = Kind(by_form=True, clones_early=True, begins="anywhere")


def sees_to(node: Node) -> bool:
    """Return whether a node is an ``index_put``."""
    return schema_of(node.target).is_index_put


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace an ``index_put`` by one that writes, where its candidate is in place."""
    if not rewriter.is_in_place(candidates[0]):
        return
    operand: Any = node.args[0]
    # Inductor's unchecked form applies an accumulation twice when it is run node by node.
    unsafe = schema_of(node.target).name == "aten::_unsafe_index_put" and not _accumulates(node)
    target = _torch.unsafe_index_put_() if unsafe else aten.index_put_.default
    rewriter.call(node, target, node.args, node.kwargs, operand.meta["val"])
    rewriter.replace(node, operand)


def _accumulates(node: Node) -> bool:
    return argument(node, "accumulate") not in (None, False)


def visit(model: Model, node: Node) -> bool:
    """Add the candidate of a scatter by index; returns whether it is one."""
    operand, place = record.own_operand(model, node)
    if place is None:
        return False
    result = model.fresh(node, node.meta["val"])
    settled = exchange.settle(model, operand, node, result)
    model.values[node] = exchange.value(model, node, settled[0], result)
    others = record.read(model, node, ((name, argument(node, name)) for name in ("indices", "values")))
    label, writes = (schema_of(node.target).name, "self"), (place.region,)
    hands_on = not _accumulates(node)
    record.add(model, KIND, node, 0, (label,), operand, settled, writes, others, hands_on=hands_on)
    return True
