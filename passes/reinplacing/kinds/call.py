"""A call of subgraphs in its caller's model: what it reads, what its results share, what could be in place.

A result is a fresh storage where the subgraphs show that it shares nothing with an operand or another
result; otherwise it and the operands are never written. A *tie* says that all subgraphs of the call leave a
result in the very bytes of one operand: then the operand is a candidate like the argument of any mutable
operator. Carrying it out needs care in two ways, since the operator itself declares no mutation:

* a loop that runs not even once returns a copy of what it was given, so users of the result are given the
  operand, which holds the same values in every case;
* dead code elimination would drop a call whose results nobody uses, so the result is copied back over the
  operand. The two are the same tensor when the call ran its subgraph, and torch copies nothing then.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from ... import _torch
from ...graph.emit import is_dense
from ...graph.spread import names_offsets
from ...graph.summary import Summaries, Summary
from ...memory.region import Region, as_size
from ...ops import higher_order
from ...ops.schema import is_operator
from ...reason import Reason
from ..facts.calls import Calls, Tie
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..facts.place import Place, Storage
from ..layout import exchange
from ..write.rewriter import Rewriter
from . import record

KIND = Kind(begins="padded")


def sees_to(node: Node) -> bool:
    """Return whether a node may call subgraphs: it calls no operator."""
    return not is_operator(node.target)


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
    if call is None or not is_understood(call, model.calls.summaries):
        return False
    _add_reads(model, call)
    model.values[node] = model.fresh(node, node.meta["val"])
    _seal_shared(model, call)
    for tie in model.calls.ties.get(node, ()) if node not in model.premises.aside else ():
        _add_tie(model, call, tie)
    return True


def is_understood(call: higher_order.Call, summaries: Summaries) -> bool:
    """Return whether it is known what a call does: all its subgraphs have summaries that fit it."""
    values = call.node.meta.get("val")
    if not isinstance(values, list | tuple):
        return False
    known = [summaries.of(body.module) for body in call.bodies]
    if any(s is None or len(s.outputs) != len(values) for s in known):
        return False
    if any(summaries.of(body.module) is None for body in call.tests):
        return False
    # A copy of an operand begins at offset 0, where a subgraph may not look for it.
    return all(_begins_at_zero(call, body) for body in (*call.bodies, *call.tests))


def _begins_at_zero(call: higher_order.Call, body: higher_order.Body) -> bool:
    """Return whether all operands of a subgraph that names bytes by offsets begin their storage."""
    if not names_offsets(body.module.graph):
        return True
    values = [higher_order.value_of(call.value(slot)) for slot in body.operands]
    return all(v is None or as_size(v.storage_offset()) == 0 for v in values)


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
    """Record which operands the call reads: those that a subgraph reads, and those that it gets not."""
    bodies = (*call.bodies, *call.tests)
    for body in bodies:
        summary = _summary(model, body)
        for number, regions in summary.reads.items():
            inner = summary.placeholders[number]
            for _, place in model.operands(call.value(body.operands[number])):
                for region in regions:
                    whole = region is None or number in body.sliced
                    found = None if whole else _translated(model, region, inner, place)
                    model.add_read(call.node, found or _storage(place, model))
        for number in summary.stacked(call):
            for _, place in model.operands(call.value(body.operands[number])):
                model.add_read(call.node, _storage(place, model))
    for slot in call.slots:
        if slot in call.handed_on or not any(slot in body.operands for body in bodies):
            for _, place in model.operands(call.value(slot)):
                model.add_read(call.node, place)


def _summary(model: Model, body: higher_order.Body) -> Summary:
    found = model.calls.summaries.of(body.module)
    assert found is not None
    return found


def _translated(model: Model, region: Any, inner: torch.Tensor, place: Place) -> Place | None:
    """Return the bytes of an operand that a region of a placeholder means, ``None`` if that is unknown."""
    was = Region.of(inner)
    # Sizes inside a subgraph may be named as others are outside, so only numbers are carried over.
    if not (region.static and was.static and place.region.static):
        return None
    if not model.geometry.same_layout(was, place.region):
        return None
    moved = region.shifted(place.region.offset - was.offset)
    return Place(place.storage, moved, place.value)


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
                # Whoever reads the result reads the operand, which no subgraph need look at.
                model.add_read(call.node, place)


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


def _looked_at(model: Model, call: higher_order.Call, slot: higher_order.Slot) -> list[tuple[Node, Place]]:
    """Return the operands in a slot and what a subgraph may look at: bytes beside them, by offsets."""
    found = model.operands(call.value(slot))
    for body in (*call.bodies, *call.tests):
        reads = _summary(model, body).reads
        if any(slot == other and None in reads.get(i, ()) for i, other in enumerate(body.operands)):
            return [(node, _storage(place, model)) for node, place in found]
    return found


def _add_tie(model: Model, call: higher_order.Call, tie: Tie) -> None:
    operand, result = call.value(tie.slot), model.values[call.node][tie.result]
    place = model.place(operand)
    assert place is not None and isinstance(result, Place)
    settled = exchange.settle(model, operand, None, result)
    writes: tuple[Region, ...] = (place.region,)
    if tie.writes is not None and place.region.static:
        writes = tuple(r.shifted(place.region.offset) for r in tie.writes)
    tied = {other.slot for other in model.calls.ties[call.node]}  # these are written, or copied, themselves
    others = tuple(
        (call.label(slot), n, p)
        for slot in call.slots
        if slot not in tied
        for n, p in _looked_at(model, call, slot)
    )
    label = (call.name, call.label(tie.slot))
    record.add(model, KIND, call.node, tie.result, (label,), operand, settled, writes, others)


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Let a call write its tied operands, or copies of them."""
    slots: dict[Any, higher_order.Slot] = {t.result: t.slot for t in rewriter.model.calls.ties[node]}
    written: dict[Any, Node] = {}
    for candidate in candidates:
        call = higher_order.call_of(node)
        assert call is not None
        new = call.value(slots[candidate.slot])
        if not rewriter.is_in_place(candidate):
            # Its result is recorded where the subgraph leaves it.
            new = rewriter.cloned(node, candidate, new, node.meta["val"][candidate.slot])
        written[candidate.slot] = new
        node.args = _with(node.args, slots[candidate.slot], new)
    values = list(node.meta["val"])
    results = [user for user in node.users if user.target is operator.getitem]
    for result, new in written.items():
        values[result] = new.meta["val"]
    node.meta["val"] = tuple(values)
    for user in results:
        if user.args[1] in written:
            rewriter.replace(user, written[user.args[1]])
    for result, new in reversed(written.items()):
        _copy_back(node, result, new)


def _with(args: Any, slot: higher_order.Slot, new: Node) -> Any:
    position, item = slot
    if item is None:
        return (*args[:position], new, *args[position + 1 :])
    items = [*args[position][:item], new, *args[position][item + 1 :]]
    return (*args[:position], type(args[position])(items), *args[position + 1 :])


def _copy_back(node: Node, result: int, operand: Node) -> None:
    history = {k: v for k, v in node.meta.items() if k in ("stack_trace", "nn_module_stack", "original_aten")}
    graph = node.graph
    with graph.inserting_after(node):
        item = graph.call_function(operator.getitem, (node, result))
    with graph.inserting_after(item):
        copy = graph.call_function(torch.ops.aten.copy_.default, (operand, item))
    for made in (item, copy):
        made.meta.update(history)
        made.meta["val"] = operand.meta["val"]


def swapped(node: Node, calls: Calls, old: Node, new: Node) -> Any:
    """Return the arguments of a call with ``new`` for ``old`` wherever it is only read."""
    call = higher_order.call_of(node)
    assert call is not None
    args: Any = map_arg(node.args, lambda n: new if n is old else n)
    for tie in calls.ties.get(node, ()):
        args = _with(args, tie.slot, call.value(tie.slot))
    return args
