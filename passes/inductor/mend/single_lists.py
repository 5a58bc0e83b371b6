"""Lists that Inductor makes no kernel of: their elements are computed one by one.

A list of one element gains nothing by a kernel for lists, which only GPUs have, and some Inductor cannot
compile. What is left of a list of which some elements are written in place may be such a list, too.
So are lists in place of which Inductor has only the functional form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Graph, Node

from ...graph.emit import Emitter
from ...ops import lists
from ...ops.computed import has_code
from ...ops.nested import LISTS
from ...ops.schema import is_operator, schema_of, tensors
from ...reinplacing.facts.decision import Decision
from ..defects import defended
from .element_op import element_op, emit_element

aten: Any = torch.ops.aten


def can_be_apart(node: Node) -> bool:
    """Return whether a node is a list, in a kernel on a GPU, whose elements can be computed one by one."""
    value = node.meta.get("val")
    if not isinstance(value, LISTS) or not lists.is_list(node):
        return False
    return any(v.is_cuda for v in tensors(value)) and element_op(node.target) is not None


def singles(graph: Graph) -> list[Node]:
    """Return the lists of one element."""
    found = (node for node in graph.nodes if can_be_apart(node) and len(node.meta["val"]) == 1)
    return list(found) if defended("list-of-one") else []


def parted(decision: Decision) -> list[Node]:
    """Return the lists of which some elements are written in place and some are not."""
    found = ((n, cs) for n, cs in decision.model.candidates_of.items() if can_be_apart(n))
    return [node for node, candidates in found if len(set(map(decision.accepted, candidates))) > 1]


def take_apart(found: Iterable[Node]) -> None:
    """Compute the elements of lists one by one, in a functional graph."""
    for made_by in found:
        emitter = Emitter(made_by.graph)
        for item in list(made_by.users):
            index: Any = item.args[1]
            element = emit_element(emitter, made_by, index)
            element.meta["val"] = made_by.meta["val"][index]
            item.replace_all_uses_with(element)
            made_by.graph.erase_node(item)
        made_by.graph.erase_node(made_by)


def store_apart(graph: Graph) -> None:
    """Compute and store one by one the elements of lists in place that Inductor does not lower.

    Each is computed right before it is stored, when no store into the same buffer comes between.
    """
    targets = {id(n.target): n.target for n in graph.nodes if n.op == "call_function"}
    apart = {key for key, target in targets.items() if _is_stored_apart(target)}  # none, in most graphs
    emitter = Emitter(graph)
    for node in [n for n in graph.nodes if id(n.target) in apart]:
        for index, operand in enumerate(node.args[0]):
            element = emit_element(emitter, node, index)
            element.meta["val"] = emitter.value(element)
            emitter.call(node, aten.copy_.default, (operand, element)).meta["val"] = operand.meta["val"]
        graph.erase_node(node)


def _is_stored_apart(target: Any) -> bool:
    if not is_operator(target) or not schema_of(target).mutable or has_code(target):
        return False
    return element_op(target) is not None
