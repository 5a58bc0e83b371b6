"""What is asserted about a tensor and known to hold needs no node: it only stands in the way of patterns.

What is not known to hold stays. Inductor drops all such asserts, and would compile the others to nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from ..memory.region import as_size
from ..ops.schema import argument
from .ground import Ground, is_plain
from .rule import Places, Rule


def _rewrite(graph: Graph) -> Places:
    ground = Ground(graph)
    target = torch.ops.aten._assert_tensor_metadata.default
    for node in list(graph.find_nodes(op="call_function", target=target)):
        why = "it has users" if node.users else _unknown(ground, node)
        yield node.name, node if why else None, why
        if not why:
            graph.erase_node(node)


def _unknown(ground: Ground, node: Node) -> str:
    """Return what of an assert is not known to hold, empty where all is."""
    operand: Any = argument(node, "a")
    val = operand.meta.get("val")
    if not is_plain(val):
        return "its operand is no plain tensor"
    for name in ("dtype", "device", "layout"):
        asserted = argument(node, name)
        if asserted is not None and asserted != getattr(val, name):
            return f"the {name} is another one"
    for name, known in (("size", val.size()), ("stride", val.stride())):
        asserted = argument(node, name)
        if asserted is not None and not _same(ground, asserted, known):
            return f"the {name} is not known"
    return ""


def _same(ground: Ground, asserted: Any, known: Any) -> bool:
    numbers = [n.meta.get("val") if isinstance(n, Node) else n for n in asserted]
    if len(numbers) != len(known) or None in numbers:
        return False
    return all(ground.geometry.equal(as_size(a), as_size(b)) for a, b in zip(numbers, known, strict=True))


RULE = Rule("asserts", _rewrite)
