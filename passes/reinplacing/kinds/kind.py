"""The kinds of candidates: which one sees to a node."""

from __future__ import annotations

from torch.fx import Node

from ... import _torch
from ...errors import GraphError
from ...ops import in_place_form
from ...ops.schema import schema_of, target_name
from ...ops.source import where
from ..facts.model import Model
from ..facts.place import mapped, places
from ..layout import hidden_alias
from . import (
    clone,
    functional,
    index_put,
    kernel_launch,
    view_scatter,
    wrapped_v1,
    wrapped_v2,
    wrapper_results,
)


def visit_wrapper(model: Model, node: Node) -> bool:
    """Add the candidates of a wrapper of mutable operators; returns whether ``node`` is one."""
    if node.op != "call_function":
        return False
    if node.target is _torch.hop("triton_kernel_wrapper_mutation"):
        raise GraphError(
            f"expected a functional graph, found {node.name} = {target_name(node.target)} at "
            f"{where(node) or 'an unknown line'}; was the graph reinplaced already?"
        )
    if node.target is _torch.hop("auto_functionalized"):
        wrapped_v1.visit(model, node)
    elif node.target is _torch.hop("auto_functionalized_v2"):
        wrapped_v2.visit(model, node)
    elif node.target is _torch.hop("triton_kernel_wrapper_functional"):
        kernel_launch.visit(model, node)
    else:
        return False
    # The results were placed before their storages were settled inside the operands'.
    value = model.values[node]
    if any(place.storage.shift != 0 for place in places(value)):
        model.values[node] = mapped(wrapper_results.shifted, value)
    return True


def visit_candidate(model: Model, node: Node) -> bool:
    """Add the candidate of a functional operator; returns whether ``node`` is of such a kind.

    What returns its operand is none, and nothing else is to be noted of it.
    """
    if hidden_alias.visit(model, node):
        return True
    schema = schema_of(node.target)
    if node in model.setting.aside:
        if schema.is_copy or schema.is_scatter or in_place_form.in_place_form(node.target) is not None:
            label = schema.name, "self"
            model.unsupported.append((node, (label,), functional.copied_bytes(model, node)))
        return False
    if schema.is_index_put:
        return index_put.visit(model, node)
    if schema.writes_through is not None:
        return view_scatter.visit(model, node)
    if schema.is_copy:
        return clone.visit(model, node) if schema.name == "aten::clone" else clone.visit_copy(model, node)
    return functional.visit(model, node)
