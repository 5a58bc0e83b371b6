"""Wrappers that clone the arguments which an operator writes (``auto_functionalized``)."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from ...graph.emit import eager_values
from ...ops import wrapper, wrapper_check
from ...ops.schema import is_operator, schema_of, target_name
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..write.rewriter import Rewriter
from . import wrapper_results
from .record import add, others_of


def visit(model: Model, node: Node) -> None:
    """Add the candidates of a v1 wrapper: the arguments that its operator writes."""
    op = node.args[0] if node.args else None
    if not is_operator(op):
        return wrapper_results.unsupported(model, node, target_name(op), {"self": node.kwargs})
    wrapper_check.check(node)
    if wrapper_results.is_set_aside(model, node) or not wrapper_check.is_taken_apart(node):
        return wrapper_results.unsupported(model, node, target_name(op), wrapper.operands(node))
    results, first = wrapper_results.placed(model, node), wrapper.first_result(node)
    others = others_of(model, wrapper.read_args(node))
    for _, _, other in others:
        model.add_read(node, other)
    positions = {name: first + i for i, name in enumerate(schema_of(op).mutable)}
    for name, item, operand in wrapper.mutated_args(node):
        place = model.place(operand)
        if place is None:
            continue
        result = results[positions[name]]
        settled = wrapper_results.settled(model, operand, result if item is None else result[item])
        label = (target_name(op), name if item is None else f"{name}[{item}]")
        slot = name if item is None else (name, item)
        write = (place.region,)
        only, _ = wrapper.write_only(model.geometry, op, [name], place.region, write)
        add(model, Kind.AUTO_V1, node, slot, (label,), operand, settled, write, others, None, only)
    return None


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace a v1 wrapper by its operator, on the operands or on clones of them."""
    op: Any = node.args[0]
    by_name: dict[str, Any] = dict(node.kwargs)
    first = wrapper.first_result(node)
    positions = {name: first + i for i, name in enumerate(schema_of(op).mutable)}
    for candidate in candidates:
        slot: Any = candidate.slot
        name, item = slot if isinstance(slot, tuple) else (slot, None)
        if item is None:
            result = node.meta["val"][positions[name]]
            by_name[name] = rewriter.operand(node, candidate, by_name[name], result)
        else:
            items = list(by_name[name])
            items[item] = rewriter.operand(node, candidate, items[item])
            by_name[name] = items
    call = rewriter.emitter.mutable_op(node, op, by_name, eager_values(node))
    written = {position: by_name[n] for n, position in positions.items()}
    wrapper_results.hand_out(
        rewriter, node, call, {**written, **wrapper_results.handed_back(op, by_name)}, first
    )
