"""Results of wrappers: where they are placed in a model, and what stands for them in a rewritten graph."""

from __future__ import annotations

import operator
from typing import Any

from torch.fx import Node

from ...errors import GraphError
from ...ops.schema import returns_only_none, schema_of, target_name
from ...ops.source import where
from ...reason import Reason
from ..facts.model import Model
from ..facts.place import Place, Storage, Value
from ..layout import exchange
from ..write.rewriter import Rewriter


def shifted(place: Place) -> Place:
    """Return a place that was made before its storage was moved, in its final coordinates."""
    shift = place.storage.shift
    return place if shift == 0 else Place(place.storage, place.region.shifted(shift), place.value)


def unsupported(model: Model, node: Node, name: str, mutated: dict[str, Any]) -> None:
    """Leave a wrapper functional: it reads its operands, clones some, and its results are not understood."""
    for _, place in model.operands((node.args, node.kwargs)):
        model.add_read(node, place)
    model.values[node] = model.fresh(node, node.meta.get("val"), opaque=True)
    size = sum(model.nbytes(p.region) for v in mutated.values() for _, p in model.operands(v))
    model.unsupported.append((node, tuple((name, arg) for arg in mutated), size))


def placed(model: Model, node: Node) -> list[Value]:
    """Place a wrapper's results in storages of their own; returns them as a list."""
    if node.meta.get("val") is None:
        raise GraphError(
            f'expected meta["val"] on {node.name} ({target_name(node.target)}) at '
            f"{where(node) or 'an unknown line'}, found none; run FakeTensorProp over the graph first."
        )
    value = model.fresh(node, node.meta["val"])
    model.values[node] = value
    return value if isinstance(value, list) else [value]


def settled(model: Model, operand: Node, result: Value) -> tuple[Storage, Reason | None]:
    """Settle a result that a wrapper clones with its operand's strides."""
    if not isinstance(result, Place):
        return model.new_storage(operand), Reason.UNSUPPORTED
    return exchange.settle(model, operand, None, result)


def is_set_aside(model: Model, node: Node) -> bool:
    """Return whether a wrapper is left alone: it binds data-dependent sizes, or it was set aside."""
    return bool(node.meta.get("unbacked_bindings")) or node in model.setting.aside


def handed_back(op: Any, by_name: dict[str, Any]) -> dict[int, Any]:
    """Return the results of an operator that are arguments which it wrote."""
    return {i: by_name[name] for i, name in enumerate(schema_of(op).returns) if name is not None}


def hand_out(rewriter: Rewriter, node: Node, call: Node, written: dict[Any, Any], first: int) -> None:
    """Give the users of a wrapper's results what the mutable call leaves behind."""
    op: Any = node.args[0] if node.args else None
    val: Any = node.meta.get("val")
    if op is not None:
        several = len(schema_of(op).returns) > 1
        call.meta["val"] = tuple(val[:first]) if several else None if returns_only_none(op) else val[0]
    for user in list(node.users):
        key = user.args[1]
        if key in written:
            _project(rewriter, user, written[key])
        elif op is not None and len(schema_of(op).returns) > 1:
            item = rewriter.emitter.call(user, operator.getitem, (call, key))
            item.meta["val"] = val[key]
            rewriter.replace(user, item)
        else:
            rewriter.replace(user, call)
    rewriter.dead.append(node)


def _project(rewriter: Rewriter, user: Node, value: Any) -> None:
    """Replace a getitem on the wrapper by the tensor, or by the list's elements, that was written."""
    if isinstance(value, Node):
        rewriter.replace(user, value)
        return
    for item in list(user.users) if value is not None else ():
        rewriter.replace(item, value[item.args[1]])
    rewriter.dead.append(user)
