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
from .record import add, others_of

aten: Any = torch.ops.aten


def rewrite(rewriter: Rewriter, node: Node, candidate: Candidate) -> None:
    """Replace an ``index_put`` by one that writes, where its candidate is in place."""
    if not rewriter.is_in_place(candidate):
        return
    operand: Any = node.args[0]
    # Inductor's unchecked form applies an accumulation twice when it is run node by node.
    accumulates = argument(node, "accumulate") not in (None, False)
    unsafe = schema_of(node.target).name == "aten::_unsafe_index_put" and not accumulates
    target = _torch.unsafe_index_put_() if unsafe else aten.index_put_.default
    call = rewriter.emitter.call(node, target, node.args, node.kwargs)
    call.meta["val"] = operand.meta["val"]
    rewriter.replace(node, operand)


def visit(model: Model, node: Node) -> bool:
    """Add the candidate of a scatter by index; returns whether it is one."""
    operand, place = record.own_operand(model, node)
    if place is None:
        return False
    result = model.fresh(node, node.meta["val"])
    settled = exchange.settle(model, operand, node, result)
    model.values[node] = exchange.value(model, node, settled[0], result)
    others = others_of(model, ((name, argument(node, name)) for name in ("indices", "values")))
    for _, _, other in others:
        model.add_read(node, other)
    label = (schema_of(node.target).name, "self")
    add(model, Kind.INDEX_PUT, node, 0, (label,), operand, settled, (place.region,), others)
    return True
