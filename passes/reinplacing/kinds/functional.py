"""Functional operators that have an in-place form: single tensors, lists element by element, collectives."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.fx import Node

from ...graph.collective import is_collective, wait_time
from ...graph.sizes import makes_sizes
from ...ops import in_place_form
from ...ops.schema import argument, arguments, schema_of, tensors
from ...ops.true_strides import is_mistold
from ...ops.wrapper_check import is_taken_apart
from ...reason import Reason
from ..facts import price
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..facts.place import Place, is_same_to_torch, reads_alike
from ..facts.target import Target
from ..layout import exchange
from ..write.rewriter import Rewriter
from .record import Others, Settled, add, others_of

KIND = Kind(by_form=True, begins="padded")
Argument = tuple[str, Any]


def sees_to(node: Node) -> bool:
    """Return whether a node calls an operator that has an in-place form."""
    return in_place_form.in_place_form(node.target) is not None


def has_form(node: Node, target: Target) -> bool:
    """Return whether what will run the graph has the in-place form of a call, too."""
    return target.runs_form(node, in_place_form.in_place_form(node.target))


def visit(model: Model, node: Node) -> bool:
    """Add the candidates of an operator with an in-place form; returns whether ``node`` is one."""
    form = in_place_form.in_place_form(node.target)
    if not has_form(node, model.target):
        return False
    operands = node.args[0] if node.args else None
    if not makes_sizes(node) and _has_form_arguments(node, form):
        first, *rest = arguments(node)
        if isinstance(operands, Node) and model.place(operands) is not None:
            return _single(model, node, first, rest)
        if isinstance(operands, list | tuple) and _is_listed(model, node, operands, rest):
            return _listed(model, node, first, rest)
    if isinstance(operands, list | tuple):
        name, argument = schema_of(node.target).name, schema_of(node.target).names[0]
        labels = tuple((name, f"{argument}[{i}]") for i in range(len(operands)))
        model.unsupported.append((node, labels, copied_bytes(model, node)))
    return False


def copied_bytes(model: Model, node: Node) -> int:
    """Return the bytes of its first argument that a functional operator copies."""
    if in_place_form.in_place_form(node.target) is not None and not in_place_form.copies_operand(node.target):
        return 0
    return price.of_places(model, (place for _, place in model.operands(node.args[:1])))


def _is_listed(model: Model, node: Node, operands: Sequence[Any], rest: list[Argument]) -> bool:
    """Return whether a call makes one tensor of each of its operands, and is only taken apart."""
    result = node.meta.get("val")
    if not isinstance(result, list | tuple) or any(model.place(operand) is None for operand in operands):
        return False
    lengths = {len(operands), *(len(v) for _, v in rest if isinstance(v, list | tuple))}
    return lengths == {len(result)} == {len(list(tensors(result)))} and is_taken_apart(node)


def _has_form_arguments(node: Node, form: Any) -> bool:
    """Return whether the in-place form takes every argument of a call, the first one by position."""
    names = schema_of(form).names
    if not node.args or not all(name in names for name, _ in arguments(node)):
        return False
    return not isinstance(argument(node, "scalars"), Node)  # one number for each element, in one tensor


def _until(model: Model, node: Node) -> float:
    """Return when a call is over: a collective goes on until the wait for its result."""
    return wait_time(node, model.order) if is_collective(node.target) else model.order[node]


def _single(model: Model, node: Node, first: Argument, rest: list[Argument]) -> bool:
    operand: Node = first[1]
    place = model.place(operand)
    result = model.fresh(node, node.meta["val"])
    if place is None or not isinstance(result, Place):
        return False
    collective = is_collective(node.target)
    # A collective works on memory without gaps: only strides of dimensions of one may be others.
    is_movable = not collective or model.geometry.same_layout(place.region, result.region)
    settled = _settled(model, node, operand, result, is_movable)
    model.values[node] = exchange.value(model, node, settled[0], result)
    others = others_of(model, rest)
    _read(model, node, others)
    if collective:
        _keep_busy(model, node, model.values[node])
    _record(model, node, 0, first[0], operand, settled, others)
    return True


def _listed(model: Model, node: Node, first: Argument, rest: list[Argument]) -> bool:
    """Add a candidate for each tensor of a list; what the call does to one does not depend on the others."""
    operands: list[Any] = list(first[1])
    results = model.fresh(node, node.meta["val"])
    model.values[node] = results
    is_movable = not is_collective(node.target)
    pairs = enumerate(zip(operands, results, strict=True))
    settled = [_settled(model, node, operand, result, is_movable, i) for i, (operand, result) in pairs]
    laid = model.relaid.get(node, [r.value for r in results])
    model.values[node] = [model.at(r.storage, tensor) for r, tensor in zip(results, laid, strict=True)]
    others = others_of(model, rest)
    _read(model, node, others)
    for i, operand in enumerate(operands):
        if is_collective(node.target):
            _keep_busy(model, node, model.values[node][i])
        mine, used = tuple(_beside(model, i, operand, rest)), tuple(_used(model, i, rest))
        _record(model, node, i, f"{first[0]}[{i}]", operand, settled[i], mine, used)
    return True


def _settled(
    model: Model, node: Node, operand: Node, result: Place, is_movable: bool, item: int | None = None
) -> Settled:
    """Settle a result inside its operand, if the operator gives it the strides and values that it says.

    Random numbers are drawn in the order of memory. In place that is the functional operator's own order
    where both lie alike without gaps: of an operand with gaps it makes something denser, whatever it says.
    """
    if schema_of(node.target).seeded:
        place = model.place(operand)
        is_other = place is not None and not model.geometry.axes(place.region).dense
        is_movable = False
    else:
        is_other = schema_of(node.target).untold and is_mistold(node)
    if is_other:
        return result.storage, Reason.LAYOUT
    return exchange.settle(model, operand, node if is_movable else None, result, item)


def _beside(
    model: Model, index: int, operand: Node, rest: list[Argument]
) -> Iterator[tuple[str, Node, Place]]:
    """Yield the operands that an element must not overwrite, all but itself, element by element.

    Those of the other elements are not among them: what becomes of these decides whether they matter.
    """
    mine = model.place(operand)
    assert mine is not None
    for name, value in rest:
        is_listed = isinstance(value, list | tuple)
        for node, place in model.operands(value[index] if is_listed else value):
            own = is_listed and reads_alike(place.value, mine.value) and is_same_to_torch(place, mine)
            if not (own and model.geometry.same(place.region, mine.region)):
                yield name, node, place


def _used(model: Model, index: int, rest: list[Argument]) -> Iterator[Place]:
    """Yield what an element of a list is computed from beside itself and what all of them use."""
    for _, value in rest:
        if isinstance(value, list | tuple):
            yield from (place for _, place in model.operands(value[index]))


def _read(model: Model, node: Node, others: Others) -> None:
    busy = is_collective(node.target)
    for _, _, place in others:
        model.add_read(node, place, _until(model, node), in_flight=busy)


def _keep_busy(model: Model, node: Node, place: Place) -> None:
    """Let nobody write what a collective is still writing: its result is in use until the wait."""
    model.add_read(node, place, _until(model, node), in_flight=True)


def _record(
    model: Model,
    node: Node,
    slot: int,
    argument: str,
    operand: Node,
    settled: Any,
    others: Others,
    used: tuple[Place, ...] = (),
) -> None:
    place = model.place(operand)
    assert place is not None
    label = (schema_of(node.target).name, argument)
    add(
        model,
        KIND,
        node,
        slot,
        (label,),
        operand,
        settled,
        (place.region,),
        others,
        until=_until(model, node),
        write_only=schema_of(node.target).ignores_first,
        allocates=not in_place_form.copies_operand(node.target),
        used=used,
    )


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace a functional call by its in-place form wherever its candidates were accepted."""
    accepted = [c for c in candidates if rewriter.decision.accepted(c)]
    if not accepted:
        return
    if not isinstance(node.args[0], list | tuple):
        operand: Any = node.args[0]
        _write(rewriter, node, operand, node.args[1:], node.kwargs, operand.meta["val"])
        rewriter.replace(node, operand)
    elif len(accepted) == len(candidates) or is_collective(node.target):
        _mixed(rewriter, node, candidates)
    else:
        _split(rewriter, node, {int(c.slot) for c in accepted})  # type: ignore[arg-type]


def _write(rewriter: Rewriter, node: Node, first: Any, args: Any, kwargs: Any, val: Any) -> Node:
    schema = schema_of(node.target)
    if schema.in_place and isinstance(first, list | tuple):
        args = [_for_each(value, len(first)) for value in args]
        kwargs = {name: _for_each(value, len(first)) for name, value in kwargs.items()}
    call = rewriter.call(node, in_place_form.in_place_form(node.target), (first, *args), kwargs, val)
    if schema.seeded:
        call.meta[in_place_form.DRAWS_AS] = (node.name, schema.name)
    return call


def _for_each(value: Any, count: int) -> Any:
    """Return a tensor that all elements share once for each of them; a number stays as it is."""
    is_tensor = isinstance(value, Node) and isinstance(value.meta.get("val"), torch.Tensor)
    return [value] * count if is_tensor else value


def _mixed(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Write the whole list in place, clones standing in for refused elements: it stays one call.

    Every process of a group must issue the same collectives, so these are never split.
    """
    operands: list[Any] = list(node.args[0])  # type: ignore[arg-type]
    for candidate in candidates:
        if not rewriter.decision.accepted(candidate):
            i = int(candidate.slot)  # type: ignore[arg-type]
            operands[i] = rewriter.cloned(node, candidate, operands[i], node.meta["val"][i])
    val = [operand.meta["val"] for operand in operands]
    _write(rewriter, node, operands, node.args[1:], node.kwargs, val)
    rewriter.hand_out(node, dict(enumerate(operands)))


def _split(rewriter: Rewriter, node: Node, accepted: set[int]) -> None:
    """Compute refused elements functionally, from the old values, and then write the others in place.

    What an operator over lists does to one element does not depend on the others.
    """
    operands: list[Any] = list(node.args[0])  # type: ignore[arg-type]
    width, val = len(operands), node.meta["val"]
    made: dict[int, Any] = {i: operands[i] for i in accepted}
    used = {user.args[1] for user in node.users}  # what nobody takes of a list is computed no more
    rest = [i for i in range(width) if i not in accepted and i in used]
    for group in filter(None, (rest, sorted(accepted))):
        args = [_part(v, group, width) for v in node.args]
        kwargs = {k: _part(v, group, width) for k, v in node.kwargs.items()}
        made_val = [val[i] for i in group]
        if group is rest:
            call = rewriter.call(node, node.target, args, kwargs, made_val)
            for position, i in enumerate(group):
                made[i] = rewriter.call(node, operator.getitem, (call, position), {}, val[i])
        else:
            _write(rewriter, node, args[0], args[1:], kwargs, made_val)
    rewriter.hand_out(node, made)


def _part(value: Any, group: list[int], width: int) -> Any:
    """Return the part of an argument that belongs to some elements; what all share stays as it is."""
    if isinstance(value, list | tuple) and len(value) == width:
        return [value[i] for i in group]
    return value
