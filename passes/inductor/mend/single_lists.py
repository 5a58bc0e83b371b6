"""Lists that Inductor makes no kernel of: their elements are computed one by one.

A list of one element gains nothing by a kernel for lists, which only GPUs have, and some Inductor cannot
compile. What is left of a list of which some elements are written in place may be such a list, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch.fx import Graph, Node

from ...graph.emit import Emitter
from ...ops import lists
from ...ops.nested import LISTS
from ...ops.schema import tensors
from ...reinplacing.facts.decision import Decision
from ..defects import defended
from .element_op import element_op, emit_element


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
