"""Operators that return their operand, or a copy of it, as they find it: only sometimes views.

What is on a device already is not moved there. Where the graph says the truth about where the operand lies,
the result is looked at as a view of it; where it does not, neither is written.
"""

from __future__ import annotations

import torch
from torch.fx import Node

from ... import _torch
from ...memory.region import Region, as_size
from ...ops.schema import is_operator, schema_of
from ...ops.true_strides import is_mistold
from ...reason import Reason
from ..facts.model import Model
from ..facts.place import Place, Value, mapped, places

Operands = list[tuple[Node, Place]]


def visit(model: Model, node: Node) -> bool:
    """Note that a call returns its operand; returns whether it surely does, and nobody lowers it."""
    if not schema_of(node.target).hides_alias or not model.target.returns_operands or not node.args:
        return False
    operand = model.place(node.args[0])
    result = node.meta.get("val")
    if operand is None or not isinstance(result, torch.Tensor) or operand.value.device != result.device:
        return False
    if is_mistold(node):
        return False
    model.values[node] = Place(operand.storage, operand.region, result)
    return True


def joined(model: Model, node: Node, operands: Operands, value: Value) -> Value:
    """Return the value of a call whose schema hides that it shares storage with an operand, else as it is.

    Neither is ever written in place. What is written into the operand, an input, is seen by who reads the
    result.
    """
    owners = {_torch.storage_key(p.value): p.storage for _, p in operands}
    made = list(places(value))
    first = operands[0][1] if operands and schema_of(node.target).hides_alias else None
    if first is None and owners.keys().isdisjoint(_torch.storage_key(p.value) for p in made):
        return value

    def one(place: Place) -> Place:
        owner = owners.get(_torch.storage_key(place.value))
        is_told = owner is not None
        if first is not None and first.value.device == place.value.device:
            owner = first.storage
        if owner is None:
            return place
        owner.close(Reason.UNKNOWN_OP, node)
        if is_told:
            return model.at(owner, place.value)
        nbytes = as_size(place.value.untyped_storage().nbytes())
        return Place(owner, model.whole.get(owner, Region.flat(nbytes)), place.value)

    return mapped(one, value)


def is_operand(model: Model, node: Node) -> bool:
    """Return whether a call was seen to return its operand, which its fake tensor need not show."""
    if not is_operator(node.target):
        return False
    schema = schema_of(node.target)
    if schema.returns_operand or not schema.hides_alias:
        return schema.returns_operand
    place = model.place(node)
    return place is not None and place.storage.node is not node
