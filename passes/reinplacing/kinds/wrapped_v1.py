"""Wrappers that clone the arguments which an operator writes (``auto_functionalized``)."""

from __future__ import annotations

import itertools
from typing import Any

from torch.fx import Node

from ... import _torch
from ...graph.emit import eager_values
from ...ops import wrapper
from ...ops.schema import schema_of, target_name
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..write.rewriter import Rewriter
from . import wrapper_results
from .record import add

KIND = Kind(clones_early=True, begins="padded")


def sees_to(node: Node) -> bool:
    """Return whether a node is a v1 wrapper."""
    return node.target is _torch.hop("auto_functionalized")


def visit(model: Model, node: Node) -> bool:
    """Add the candidates of a v1 wrapper: the arguments that its operator writes."""
    opened = wrapper_results.opened(model, node)
    if opened is None:
        return True
    op: Any = node.args[0]
    results, others = opened
    positions = _positions(node)
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
        add(model, KIND, node, slot, (label,), operand, settled, write, others, None, only)
    return True


def _positions(node: Node) -> dict[str, int]:
    """Return where each argument that is written stands among the wrapper's results."""
    schema = schema_of(node.args[0])
    return dict(zip(schema.mutable, itertools.count(max(1, len(schema.returns)))))


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace a v1 wrapper by its operator, on the operands or on clones of them."""
    op: Any = node.args[0]
    by_name: dict[str, Any] = dict(node.kwargs)
    positions = _positions(node)
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
    wrapper_results.hand_out(rewriter, node, call, {**written, **wrapper_results.handed_back(op, by_name)})
