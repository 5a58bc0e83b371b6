"""Nodes of operators that users declared: what they read, write and alias in a functional graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import Node

from ... import _torch
from ...graph.collective import END
from ...memory.region import Size
from ...ops.declarations import Argument, Declaration, declaration_of
from ...ops.schema import arguments, is_operator, schema_of, tensors
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
    model.values[node] = _results(model, node, found)
    return True


def is_declared(node: Node) -> bool:
    """Return whether it was declared what a node reads, writes or aliases."""
    return _declaration(node) is not None


def is_alias(node: Node) -> bool:
    """Return whether a node's results were declared to share storage with its operands."""
    found = _declaration(node)
    return found is not None and bool(found.aliases)


def revalued(model: Model, node: Node, moved: Callable[[Place | None], Size]) -> Any:
    """Return the fake value of a declared alias whose operand is another tensor now.

    Args:
        model: of the graph before the rewrite.
        node: the alias.
        moved: says by how many items a place moved in its storage.
    """
    found = _declaration(node)
    assert found is not None
    given = dict(_arguments(node))
    places, _ = _listed(model.values[node])
    values, many = _listed(node.meta["val"])
    for result, argument in found.aliases:
        source = given.get(argument)
        if not isinstance(source, Node) or result >= len(values):
            continue
        old, new, place = values[result], source.meta["val"], places[result]
        if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor) and new.dtype == old.dtype:
            by = moved(place)
            if not isinstance(by, int):
                raise ValueError(f"{node.name} would begin {by} elements elsewhere")
            layout = new, old.size(), old.stride(), old.storage_offset() + by
            values[result] = _torch.run_fake(model.fake_mode, torch.ops.aten.as_strided.default, layout, {})
    return values if many else values[0]


def _declaration(node: Node) -> Declaration | None:
    found = declaration_of(node.target) if node.op == "call_function" else None
    return found if found is not None and found.places else None


def _arguments(node: Node) -> Iterator[tuple[Argument, Any]]:
    if is_operator(node.target):
        yield from arguments(node)
    else:
        yield from enumerate(node.args)
        yield from node.kwargs.items()


def _listed(value: Any) -> tuple[list[Any], bool]:
    many = isinstance(value, list | tuple)
    return (list(value) if many else [value]), many


def _results(model: Model, node: Node, found: Declaration) -> Value:
    """Return where the results live: in an argument where that was declared, else in fresh storage."""
    values, many = _listed(node.meta["val"])
    given, aliases = dict(_arguments(node)), dict(found.aliases)
    places = [
        _alias(model, node, value, [p for _, p in model.operands(given.get(aliases[i]))])
        if i in aliases
        else _fresh(model, node, value)
        for i, value in enumerate(values)
    ]
    return places if many else places[0]


def _fresh(model: Model, node: Node, value: Any) -> Value:
    """Return places in storage of the result's own; what its fake value shares with others is closed."""
    result = model.fresh(node, value)
    keys = {_torch.storage_key(p.value): p.storage for _, p in model.operands((node.args, node.kwargs))}

    def one(place: Place) -> Place:
        owner = keys.get(_torch.storage_key(place.value))
        if owner is not None:  # not what was declared: it aliases
            owner.close(Reason.UNKNOWN_OP, node)
            place.storage.close(Reason.UNKNOWN_OP, node)
        return place

    return mapped(one, result)


def _alias(model: Model, node: Node, value: Any, owners: list[Place]) -> Value:
    """Return places inside the argument; where the fake value does not say which bytes, all are closed."""
    keys = {_torch.storage_key(p.value): p for p in owners}
    if not owners:
        return model.fresh(node, value, opaque=True)
    if not model.target.sees_declared_aliases:
        for place in owners:
            place.storage.close(Reason.LOWERING, node)

    def one(tensor: torch.Tensor) -> Place:
        owner = keys.get(_torch.storage_key(tensor))
        if owner is not None:
            return model.at(owner.storage, tensor)
        for place in owners:
            place.storage.close(Reason.UNKNOWN_OP, node)
        storage = owners[0].storage
        return Place(storage, model.whole.get(storage, owners[0].region), tensor)

    if len(owners) > 1 and any(_torch.storage_key(t) not in keys for t in tensors(value)):
        for place in owners:  # any of them: whoever reads the result may read these bytes, at any time
            model.add_read(node, place, END)
    return mapped(one, value)
