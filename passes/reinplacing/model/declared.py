"""Nodes of operators that users declared: what they read and write in a functional graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.fx import Node

from ... import _torch
from ...ops.declarations import Argument, Declaration, declaration_of
from ...ops.schema import arguments, is_operator, schema_of
from ...ops.wording import no_value
from ...reason import Reason
from ..facts.model import Model
from ..facts.place import Place, Value, mapped


def visit(model: Model, node: Node) -> bool:
    """Record a node of a declared operator; returns whether ``node`` is one.

    Mutable operators are not: a functional graph holds their wrappers.
    """
    found = _declaration(node)
    if found is None or (is_operator(node.target) and schema_of(node.target).mutable):
        return False
    if "val" not in node.meta:
        raise no_value(node)
    for argument, value in _arguments(node):
        for _, place in model.operands(value):
            if found.reads_argument(argument) or argument in found.writes:
                model.add_read(node, place)
            if argument in found.writes:
                # A write that stays where it is in the graph: what it overwrites is not modelled, so
                # no value may come to live in these bytes, and none may leave them.
                place.storage.close(Reason.UNKNOWN_OP, node)
    model.values[node] = _fresh(model, node)
    return True


def is_declared(node: Node) -> bool:
    """Return whether it was declared what a node reads or writes."""
    return _declaration(node) is not None


def _declaration(node: Node) -> Declaration | None:
    found = declaration_of(node.target) if node.op == "call_function" else None
    return found if found is not None and found.places else None


def _arguments(node: Node) -> Iterator[tuple[Argument, Any]]:
    if is_operator(node.target):
        yield from arguments(node)
    else:
        yield from enumerate(node.args)
        yield from node.kwargs.items()


def _fresh(model: Model, node: Node) -> Value:
    """Return places in storage of the result's own; what its fake value shares with others is closed."""
    result = model.fresh(node, node.meta["val"])
    keys = {_torch.storage_key(p.value): p.storage for _, p in model.operands((node.args, node.kwargs))}

    def one(place: Place) -> Place:
        owner = keys.get(_torch.storage_key(place.value))
        if owner is not None:
            owner.close(Reason.UNKNOWN_OP, node)
            place.storage.close(Reason.UNKNOWN_OP, node)
        return place

    return mapped(one, result)
