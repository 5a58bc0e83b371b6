"""The operator that computes one element of a list: of ``_foreach_add.List`` it is ``add.Tensor``.

What an operator over lists does to an element does not depend on the others, and is what the operator of the
same name does to a tensor: torch's own kernels for lists, where they have no fused one, call it in a loop.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.fx import Node

from ...graph.emit import Emitter
from ...ops.computed import has_code
from ...ops.schema import schema_of

aten: Any = torch.ops.aten
_PREFIX = "aten::_foreach_"


# Overloads that take what an overload over lists takes, the first that there is.
_OVERLOADS = {
    "List": ("Tensor", "Tensor_Tensor", "default"),
    "Tensor": ("Tensor",),
    "Scalar": ("Tensor_Scalar", "Scalar", "default"),
    "ScalarAndTensor": ("Scalar",),
    "default": ("default",),
}


# Operators that have no overload for a number.
_WITH_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}


@functools.cache
def element_op(op: Any) -> Any:
    """Return the functional operator on tensors that Inductor lowers, ``None`` where none is known.

    Args:
        op: an operator over lists, functional or in place.
    """
    name = schema_of(op).name
    if not name.startswith(_PREFIX):
        return None
    name, overload = name.removeprefix(_PREFIX).removesuffix("_"), op._overloadname
    if overload == "Scalar":
        name = _WITH_NUMBERS.get(name, name)
    packet = getattr(aten, name, None)
    known = packet.overloads() if packet is not None else ()
    found = next((getattr(packet, o) for o in _OVERLOADS.get(overload, ()) if o in known), None)
    return found if found is not None and has_code(found) else None


def emit_element(emitter: Emitter, node: Node, index: int) -> Node:
    """Insert the computation of one element of a list before it; its value is left to the caller.

    Args:
        emitter: makes nodes of the graph.
        node: an operator over lists that has one for elements.
        index: which element.
    """
    op = element_op(node.target)
    own = [value[index] if isinstance(value, list | tuple) else value for value in node.args]
    named = dict(node.kwargs)
    schema, takes = schema_of(node.target), schema_of(op)
    count = sum(name not in takes.kwarg_only for name in takes.names)
    named.update(zip(schema.names[count:], own[count:], strict=False))
    return emitter.call(node, op, own[:count], named)
