"""The kinds of candidates: which one sees to a node, and writes it; a new one is one more module here."""

from __future__ import annotations

import operator
from typing import Any, Protocol

from torch.fx import Graph, Node

from ... import _torch
from ...errors import GraphError
from ...ops.declarations import declaration_of
from ...ops.schema import is_operator, schema_of
from ...ops.wording import at
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..facts.place import mapped
from ..facts.target import Target
from ..layout import hidden_alias
from ..write.rewriter import Rewriter
from . import (
    call,
    clone,
    functional,
    index_put,
    kernel_launch,
    out_wrapper,
    view_scatter,
    wrapped_v1,
    wrapped_v2,
)


class Finder(Protocol):
    """A module that finds candidates of a kind, and writes them."""

    def sees_to(self, node: Node) -> bool:
        """Return whether a node is of this kind, and so of no later one."""

    def visit(self, model: Model, node: Node) -> bool:
        """Add a node to the model; returns whether it did: what is left is like any other node."""

    def rewrite(self, rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
        """Write a node, with each of its candidates as it was decided."""


_OPERATORS: tuple[Finder, ...] = (index_put, view_scatter, clone, functional)
_CALLS: tuple[Finder, ...] = (wrapped_v1, out_wrapper, wrapped_v2, kernel_launch)
_WRITERS: dict[Kind, Finder] = {
    **{module.KIND: module for module in (wrapped_v1, out_wrapper, wrapped_v2, kernel_launch)},
    **{module.KIND: module for module in (index_put, view_scatter, functional)},
    clone.CLONE: clone,
    clone.COPY: clone,
}


_known: dict[int, tuple[Any, Finder | None]] = {}


def occurs_in(graph: Graph, target: Target) -> bool:
    """Return whether a graph may hold a candidate, or something that no functional graph does.

    Most graphs of inference hold none: whoever asks first builds no model of them.

    Args:
        graph: any graph.
        target: what will run the rewritten graph.
    """
    return any(_may_write(node, target) for node in graph.nodes)


def _may_write(node: Node, target: Target) -> bool:
    if node.op != "call_function":
        return node.op in ("call_module", "call_method")
    if not is_operator(node.target):
        return node.target is not operator.getitem
    if schema_of(node.target).mutable or declaration_of(node.target) is not None:
        return True
    finder = _of_operator(node)
    if finder is functional:
        return functional.has_form(node, target)
    return finder is not None and not clone.is_conversion(node)


def visit_call(model: Model, node: Node) -> bool:
    """Add a wrapper of mutable operators, or a call of subgraphs; returns whether it is understood."""
    if node.op != "call_function":
        return False
    if node.target is _torch.hop("triton_kernel_wrapper_mutation"):
        raise GraphError(f"expected a functional graph, found {at(node)}; was the graph reinplaced already?")
    for kind in _CALLS:
        if kind.sees_to(node):
            break
    else:
        return call.visit(model, node)
    if not kind.visit(model, node):
        return False
    # The results were placed before their storages were settled inside the operands'.
    if any(c.result.shift != 0 for c in model.candidates_of.get(node, ())):
        model.values[node] = mapped(lambda place: model.at(place.storage, place.value), model.values[node])
    return True


def visit_operator(model: Model, node: Node) -> bool:
    """Add the candidates of a functional operator; returns whether ``node`` is of such a kind.

    What returns its operand is none, and nothing else is to be noted of it.
    """
    if hidden_alias.visit(model, node):
        return True
    kind = _of_operator(node)
    if kind is None:
        return False
    if node in model.premises.aside:
        label = schema_of(node.target).name, "self"
        model.unsupported.append((node, (label,), functional.copied_bytes(model, node)))
        return False
    return kind.visit(model, node)


def _of_operator(node: Node) -> Finder | None:
    """Return the kind that sees to an operator: its target alone decides, so each is asked about once."""
    known = _known.get(id(node.target))  # by identity, which the entry keeps alive: hashing is slow
    if known is None:
        finder = next((kind for kind in _OPERATORS if kind.sees_to(node)), None)
        known = _known[id(node.target)] = node.target, finder
    return known[1]


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Write a node, with each of its candidates as it was decided."""
    _WRITERS[candidates[0].kind].rewrite(rewriter, node, candidates)
