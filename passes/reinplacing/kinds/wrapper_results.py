"""Results of wrappers: where they are placed in a model, and what stands for them in a rewritten graph."""

from __future__ import annotations

import operator
from typing import Any

from torch.fx import Node

from ...graph.sizes import bind_sizes
from ...ops import wrapper, wrapper_check
from ...ops.schema import is_operator, schema_of, target_name
from ...ops.wording import no_value
from ...reason import Reason
from ..facts import price
from ..facts.model import Model
from ..facts.place import Place, Value
from ..layout import exchange
from ..write.rewriter import Rewriter
from .record import Others, Settled, read


def opened(model: Model, node: Node) -> tuple[list[Value], Others] | None:
    """Place the results of a wrapper of an operator, and note what it reads.

    Returns:
        Its results, and the operands that it reads; ``None`` where it stays as it is.
    """
    op = node.args[0] if node.args else None
    if not is_operator(op):
        unsupported(model, node, target_name(op), {"self": node.kwargs.get("_all_bases", node.kwargs)})
        return None
    wrapper_check.check(node)
    fits = wrapper_check.hands_back_operands(node) and wrapper_check.is_taken_apart(node)
    if node in model.premises.aside or not fits:
        unsupported(model, node, target_name(op), wrapper.operands(node))
        return None
    return placed(model, node), read(model, node, wrapper.read_args(node))


def unsupported(model: Model, node: Node, name: str, mutated: dict[str, Any]) -> None:
    """Leave a wrapper functional: it reads its operands, clones some, and its results are not understood."""
    for _, place in model.operands((node.args, node.kwargs)):
        model.add_read(node, place)
    model.values[node] = model.fresh(node, node.meta.get("val"), opaque=True)
    size = price.of_places(model, (place for _, place in model.operands(list(mutated.values()))))
    model.unsupported.append((node, tuple((name, arg) for arg in mutated), size))


def placed(model: Model, node: Node) -> list[Value]:
    """Place a wrapper's results in storages of their own; returns them as a list."""
    if node.meta.get("val") is None:
        raise no_value(node)
    value = model.fresh(node, node.meta["val"])
    model.values[node] = value
    return value if isinstance(value, list) else [value]


def settled(model: Model, operand: Node, result: Value) -> Settled:
    """Settle a result that a wrapper clones with its operand's strides."""
    if not isinstance(result, Place):
        return model.new_storage(operand), Reason.UNSUPPORTED
    return exchange.settle(model, operand, None, result)


def handed_back(op: Any, by_name: dict[str, Any]) -> dict[int, Any]:
    """Return the results of an operator that are arguments which it wrote."""
    return {i: by_name[name] for i, name in enumerate(schema_of(op).returns) if name is not None}


def note_results(call: Node, node: Node) -> int:
    """Give the call of a wrapper's operator the values that it returns itself; returns how many these are."""
    count, val = len(schema_of(node.args[0]).returns), node.meta["val"]
    call.meta["val"] = tuple(val[:count]) if count > 1 else val[0] if count else None
    if count:
        bind_sizes(call, node)
    return count


def hand_out(rewriter: Rewriter, node: Node, call: Node, written: dict[Any, Any]) -> None:
    """Give the users of a wrapper's results what the mutable call leaves behind.

    Args:
        rewriter: the rewrite.
        node: the wrapper.
        call: the call of its operator; kernels return nothing.
        written: by position, or by name of a kernel's argument, what stands for the results.
    """
    val: Any = node.meta.get("val")
    count = note_results(call, node) if node.args else 0
    for user in list(node.users):
        key = user.args[1]
        if key in written:
            _project(rewriter, user, written[key])
        elif count > 1:
            item = rewriter.call(user, operator.getitem, (call, key), {}, val[key])
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
