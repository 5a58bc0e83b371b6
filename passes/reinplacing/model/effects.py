"""Effectful operators: ``with_effects(token, op, ...)`` reads what ``op`` reads, and keeps its order."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from ... import _torch
from ...ops.schema import is_operator, schema_of
from ..facts.model import Model


def visit(model: Model, node: Node) -> bool:
    """Visit an effectful call of an operator that mutates and aliases nothing; else return ``False``.

    The token orders effects among themselves. These nodes stay where they are, and no reader moves across
    them, so nothing more is to be kept. Torch runs no effectful operator that aliases its operands, so one
    with an in-place form has nothing that it could be rewritten to; a mutable operator with an effect comes
    as an ordinary wrapper without a token, which keeps its place among the other nodes.
    """
    if node.op != "call_function" or node.target is not _torch.hop("with_effects"):
        return False
    op: Any = node.args[1] if len(node.args) > 1 else None
    if not is_operator(op) or schema_of(op).mutable or any(r is not None for r in schema_of(op).returns):
        return False
    for _, place in model.operands((node.args[2:], node.kwargs)):
        model.add_read(node, place)
    model.values[node] = model.fresh(node, node.meta.get("val"))
    return True
