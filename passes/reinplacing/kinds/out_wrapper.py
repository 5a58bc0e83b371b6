"""Wrappers of operators whose mutable arguments are only outputs (``torch.Tag.out``, torch 2.13 and later).

Functionalization does not pass such arguments at all: the v2 wrapper holds their sizes, strides, dtypes and
devices, makes empty tensors of them and returns what the operator wrote. Nothing is ever copied for it. What
can be saved is the way back: a result that is copied into an input is computed right there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import Node

from ... import _torch
from ...errors import GraphError
from ...graph.emit import Emitter, eager_values
from ...ops import wrapper, wrapper_check
from ...ops.schema import is_operator, schema_of, target_name
from ...ops.wording import at, no_value
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..facts.place import Place
from ..layout import exchange
from ..write.rewriter import Rewriter
from .record import add, read

aten: Any = torch.ops.aten
KIND = Kind(begins="anywhere")
_LAYOUT = ("size", "stride", "dtype", "device")


def sees_to(node: Node) -> bool:
    """Return whether a node is a wrapper that makes the buffers which its operator writes."""
    if node.op != "call_function" or node.target is not _torch.hop("auto_functionalized_v2"):
        return False
    op = node.args[0] if node.args else None
    names = schema_of(op).mutable if is_operator(op) else ()
    return bool(names) and all(f"_{name}_dtype" in node.kwargs for name in names)


def visit(model: Model, node: Node) -> bool:
    """Record such a wrapper: its results are fresh, and one that is copied into an input may live there."""
    op = node.args[0]
    check(node)
    others = read(model, node, wrapper.read_args(node))
    is_left = node in model.premises.aside
    model.values[node] = model.fresh(node, node.meta["val"], opaque=is_left)
    for i, (name, taken) in enumerate(zip(schema_of(op).mutable, _taken(node), strict=True)):
        value = model.values[node] if isinstance(node.meta["val"], torch.Tensor) else model.values[node][i]
        is_kept = is_left or (model.calls.inner and model.layouts.of(node).is_located)
        operand = None if is_kept else _destination(model, taken)  # an operand may begin where a slice does
        place = model.place(operand)
        if operand is not None and place is not None and isinstance(value, Place):
            settled = exchange.settle(model, operand, None, value)
            write, label = (place.region,), (target_name(op), name)
            what = KIND, node, i, (label,), operand, settled, write, others
            add(model, *what, write_only=True, allocates=True)
    return True


def _taken(node: Node) -> list[list[Node]]:
    """Return the nodes of each result."""
    if isinstance(node.meta["val"], torch.Tensor):
        return [[node]]
    return [[user for user in node.users if user.args[1] == i] for i in range(len(node.meta["val"]))]


def _destination(model: Model, taken: list[Node]) -> Node | None:
    """Return the input that a result is copied into first."""
    copies = [
        user
        for result in taken
        for user in result.users
        if user.target is aten.copy_.default and user.args[1] is result
    ]
    first: Any = min(copies, key=model.order.__getitem__, default=None)
    into = first.args[0] if first is not None else None
    return into if isinstance(into, Node) and into.op in ("placeholder", "get_attr") else None


def check(node: Node) -> None:
    """Raise a :class:`GraphError` that names the node where it is no such wrapper after all."""
    op: Any = node.args[0]
    schema, value = schema_of(op), node.meta.get("val")
    if value is None:
        raise no_value(node)
    for name in schema.mutable:
        missing = next((k for k in _LAYOUT if f"_{name}_{k}" not in node.kwargs), None)
        if missing is not None:
            raise GraphError(f"expected the argument '_{name}_{missing}', got none, in {at(node)} of {op}")
    values = [value] if isinstance(value, torch.Tensor) else value
    if not isinstance(values, list | tuple) or len(values) != len(schema.mutable):
        raise GraphError(f"expected {len(schema.mutable)} results in {at(node)} of {op}, got {value!r}")
    if not isinstance(value, torch.Tensor) and not wrapper_check.is_taken_apart(node):
        raise GraphError(f"expected only single results to be taken out of {at(node)} of {op}")


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Call the operator itself, on empty buffers or on the inputs that its results are copied into."""
    if node in rewriter.model.premises.aside:
        return
    targets = {c.slot: c.operand_node for c in candidates if rewriter.decision.accepted(c)}
    _, made = called(rewriter.emitter, node, targets)
    if isinstance(node.meta["val"], torch.Tensor):
        rewriter.replace(node, made[0])
    else:
        rewriter.hand_out(node, dict(enumerate(made)))


def called(emitter: Emitter, node: Node, targets: Mapping[Any, Node]) -> tuple[Node, list[Node]]:
    """Insert the call of a wrapper's operator; returns it and the buffers that it writes.

    Args:
        emitter: makes nodes of the graph.
        node: the wrapper.
        targets: what it writes into, by the positions of its results; the others are empty buffers.
    """
    op: Any = node.args[0]
    schema = schema_of(op)
    made = [targets.get(i) or _empty(emitter, node, name) for i, name in enumerate(schema.mutable)]
    by_name = {n: v for n, v in node.kwargs.items() if n in schema.names}
    by_name.update(zip(schema.mutable, made, strict=True))
    eager = eager_values(node)
    if eager is not None:
        eager = {**eager, **{n: m.meta["val"] for n, m in zip(schema.mutable, made, strict=True)}}
    call = emitter.mutable_op(node, op, by_name, eager)
    call.meta["val"] = node.meta["val"]
    return call, made


def _empty(emitter: Emitter, node: Node, name: str) -> Node:
    size, stride, dtype, device = (node.kwargs[f"_{name}_{key}"] for key in _LAYOUT)
    like = {"dtype": dtype, "device": device}
    return emitter.view(node, aten.empty_strided.default, (list(size), list(stride)), like)  # type: ignore[arg-type]
