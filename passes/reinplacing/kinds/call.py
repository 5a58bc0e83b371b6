"""A call of subgraphs in its caller's model: what it reads, and what its results share.

A result is a fresh storage where the subgraphs show that it shares nothing with an operand or another
result; otherwise it and the operands are never written. No operand of a call is a candidate: what a subgraph
writes is its own.
"""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from ... import _torch
from ...graph.emit import is_dense
from ...graph.spread import names_offsets
from ...graph.summary import Summaries, Summary
from ...memory.region import Region, as_size
from ...ops import higher_order
from ...reason import Reason
from ..facts.model import Model
from ..facts.place import Place, Storage


def visit(model: Model, node: Node) -> bool:
    """Add a call of subgraphs to a model; returns whether ``node`` is one that is understood."""
    if node.op == "call_function" and node.target is _torch.hop("flex_attention") and "val" in node.meta:
        _read_all(model, node)
        model.values[node] = model.fresh(node, node.meta["val"])
        return True
    if _is_associative_scan(node):
        _read_all(model, node)
        model.values[node] = model.fresh(node, node.meta["val"], opaque=True)
        return True
    call = higher_order.call_of(node)
    if call is None or not _is_understood(call, model.calls.summaries):
        return False
    _add_reads(model, call)
    model.values[node] = model.fresh(node, node.meta["val"])
    _seal_shared(model, call)
    return True


def _is_understood(call: higher_order.Call, summaries: Summaries) -> bool:
    """Return whether it is known what a call does: all its subgraphs have summaries that fit it."""
    values = call.node.meta.get("val")
    if not isinstance(values, list | tuple):
        return False
    known = [summaries.of(body.module) for body in call.bodies]
    if any(s is None or len(s.outputs) != len(values) for s in known):
        return False
    return all(summaries.of(body.module) is not None for body in call.tests)


def _is_associative_scan(node: Node) -> bool:
    """Return whether a node is an associative scan over several elements; of one it returns the operand."""
    if node.op != "call_function" or node.target is not _torch.hop("associative_scan"):
        return False
    xs: Any = node.args[1] if len(node.args) > 1 else ()
    values = [higher_order.value_of(x) for x in xs]
    return bool(values) and all(
        v is not None and v.dim() and isinstance(as_size(v.size(0)), int) and as_size(v.size(0)) > 1
        for v in values
    )


def _read_all(model: Model, node: Node) -> None:
    for _, place in model.operands((node.args, node.kwargs)):
        model.add_read(node, place)


def _add_reads(model: Model, call: higher_order.Call) -> None:
    """Record that a call reads what it is given, and what lies beside it where bytes are named by offsets."""
    is_beside = any(names_offsets(body.module.graph) for body in (*call.bodies, *call.tests))
    for _, place in model.operands(call.node.args):
        model.add_read(call.node, _storage(place, model) if is_beside else place)


def _summary(model: Model, body: higher_order.Body) -> Summary:
    found = model.calls.summaries.of(body.module)
    assert found is not None
    return found


def _storage(place: Place, model: Model) -> Place:
    """Return the whole storage of an operand: a subgraph may look beside the operand itself."""
    size = as_size(place.value.untyped_storage().nbytes())
    whole = model.whole.get(place.storage, Region.flat(size).shifted(place.storage.shift))
    return Place(place.storage, whole, place.value)


def _seal_shared(model: Model, call: higher_order.Call) -> None:
    """Never write results that share storage with operands or with each other, nor those operands."""
    keys = {_torch.storage_key(p.value): p.storage for _, p in model.operands((call.node.args,))}
    for result, value in enumerate(model.values[call.node]):
        if not isinstance(value, Place):
            continue
        owner = keys.get(_torch.storage_key(value.value))
        if owner is not None:
            _seal(call.node, [owner, value.storage])
        if not call.is_stacked(result):
            _seal_tied_inside(model, call, result, value)
        if model.layouts.has_names and not _is_laid_out(model, call, result, value):
            _seal(call.node, [value.storage])


def _seal_tied_inside(model: Model, call: higher_order.Call, result: int, value: Place) -> None:
    for body in call.bodies:
        summary = _summary(model, body)
        if summary.is_fresh(result):
            continue
        _seal(call.node, [value.storage])
        for number in summary.operands_of(result):
            for _, place in model.operands(call.value(body.operands[number])):
                _seal(call.node, [place.storage])


def _seal(node: Node, storages: list[Storage]) -> None:
    for storage in storages:
        storage.close(Reason.UNKNOWN_OP, node)


def _is_laid_out(model: Model, call: higher_order.Call, result: int, value: Place) -> bool:
    """Return whether a result surely has the strides and the offset that the graph notes for it."""
    if call.is_stacked(result):
        return bool(value.region.offset == 0)
    for body in call.bodies:
        output = _summary(model, body).outputs[result]
        if output is None or not model.geometry.same(Region.of(output.value), Region.of(value.value)):
            return False
    # What is handed on when a loop does not run is a copy without gaps.
    return not call.may_skip or is_dense(value.value)
