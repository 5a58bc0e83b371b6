"""Calls of subgraphs whose operands must begin where the graph says."""

from __future__ import annotations

from torch.fx import Node

from ...graph.subgraphs import names_offsets
from ...ops import higher_order
from ..facts.model import Model


def pins(model: Model, node: Node) -> bool:
    """Return whether a node calls subgraphs whose operands must begin where the graph says."""
    call = higher_order.call_of(node)
    return call is not None and pins_operands(model, call)


def pins_operands(model: Model, call: higher_order.Call) -> bool:
    """Return whether the operands of a call must begin where the graph says."""
    # A result may begin where an operand does; what is made inside may come to lie in an operand's bytes.
    bodies = (*call.bodies, *call.tests)
    return model.addressing.has_beginnings or any(names_offsets(body.module.graph) for body in bodies)
