"""In-place forms of functional operators, found by their schemas.

``aten::foo.overload(Tensor self, ...) -> Tensor`` has one when ``aten::foo_.overload`` takes the same
arguments and declares that it writes the first one, and nothing else. Only operators that Inductor runs as
kernels of their own gain by it: what is pointwise is fused, and a fused write needs no memory of its own.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from .. import _torch
from .computed import has_code
from .schema import OpSchema, schema_of

_NAMESPACES = ("aten", "_c10d_functional")
# In the meta of a random call that was put in place: the name of the functional one, and of its operator. By
# these whoever runs both graphs knows that they draw the same numbers.
DRAWS_AS = "draws_as"


@functools.cache
def in_place_form(op: Any) -> Any:
    """Return the in-place overload of a functional operator that is worth using, or ``None``."""
    schema = schema_of(op)
    namespace, _, name = schema.name.partition("::")
    if namespace not in _NAMESPACES or schema.mutable or len(schema.returns) != 1 or schema.view:
        return None
    written, overload = schema.in_place or ("", op._overloadname)
    packet = getattr(getattr(torch.ops, namespace), written or f"{name}_", None)
    if packet is None or overload not in packet.overloads():
        return None
    form = getattr(packet, overload)
    if not _is_form_of(schema_of(form), schema) or torch.Tag.inplace_view in form.tags:
        return None
    return form if _is_kernel(op, form) else None


def _is_form_of(form: OpSchema, schema: OpSchema) -> bool:
    first = schema.names[0] if schema.names else None
    if form.names[:1] != (first,) or form.mutable != (first,) or set(form.names) - set(schema.names):
        return False
    return form.kwarg_only == schema.kwarg_only & set(form.names) and all(r == first for r in form.returns)


def _is_kernel(op: Any, form: Any) -> bool:
    """Return whether Inductor may run an operator by itself, or write what it computes in place."""
    if torch.Tag.pointwise in op.tags and not _torch.is_fallback(op):
        return False
    if is_lowered_apart(op, form):
        return _torch.is_lowered_as_list(op) or schema_of(op).calls_kernel or schema_of(op).scans
    return True


def is_lowered_apart(op: Any, form: Any) -> bool:
    """Return whether Inductor has code, or a choice of kernels, for an operator and not its in-place form."""
    return has_code(op) and not has_code(form)


def copies_operand(op: Any) -> bool:
    """Return whether the functional form copies its first operand, beside what it computes."""
    schema = schema_of(op)
    return schema.copies_first or schema.name.startswith("_c10d_functional::")
