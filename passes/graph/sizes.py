"""The symbols of a graph: where they are kept, the nodes that give them, sums and products as nodes."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from .. import _torch
from ..memory._torch import data_symbols, floor_division, greater, lesser, size_hint
from ..memory.region import Size, as_size
from ..ops.nested import nodes
from ..ops.schema import tensors

Named = dict[Size, Node]  # the first node that gives a size


def fake_mode_of(graph: Graph) -> Any:
    """Return the mode of the graph's fake tensors, ``None`` without any."""
    found = (_torch.fake_mode_of(list(tensors(node.meta.get("val")))) for node in graph.nodes)
    return next((mode for mode in found if mode is not None), None)


def shape_env_of(graph: Graph) -> Any:
    """Return what knows the graph's symbols, ``None`` without any."""
    return getattr(fake_mode_of(graph), "shape_env", None)


def bytes_of(value: Any) -> int:
    """Return the bytes of the tensors of nodes, hinted where symbolic; 0 of what is not understood."""
    try:
        found = [t for node in nodes(value) for t in tensors(node.meta.get("val"))]
        shape_env = getattr(_torch.fake_mode_of(found), "shape_env", None)
        return sum(size_hint(shape_env, as_size(tensor.nbytes)) for tensor in found)
    except Exception:  # noqa: BLE001  (whatever is in a value)
        return 0


def makes_sizes(node: Node) -> bool:
    """Return whether a node makes values of sizes that only its data tell.

    Made again, or of other operands, it has other sizes, which nothing in the graph gives.
    """
    if node.meta.get("unbacked_bindings"):
        return True
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and {int}.issuperset(map(type, value.size())):
        return False
    made = _sizes(value)
    return bool(made) and not made <= _sizes([n.meta.get("val") for n in node.all_input_nodes])


def bind_sizes(node: Node, origin: Node) -> None:
    """Note where in a node's value the sizes stand that it makes of its data, as ``origin`` did.

    Without the note torch cannot tell, when it runs the node on fake tensors again, that they are the same.
    """
    symbols = _sizes(node.meta["val"])
    for operand in origin.all_input_nodes if symbols else ():
        symbols -= _sizes(operand.meta.get("val"))
    if symbols:
        node.meta["unbacked_bindings"] = _torch.bindings_of(node.meta["val"], symbols)


def _sizes(value: Any) -> frozenset[Any]:
    scalars = [value] if isinstance(value, torch.SymInt) else []
    return data_symbols(scalars + [n for t in tensors(value) for n in t.size()])


def given(graph: Graph) -> Named:
    """Return the sizes that a graph is given, each with the placeholder."""
    named = Named()
    for node in graph.find_nodes(op="placeholder"):
        note(named, node)
    return named


def is_named(size: Size, named: Named) -> bool:
    """Return whether ``written_out`` writes a sum of products of sizes."""
    return isinstance(size, int) or size.free_symbols <= named.keys()


def note(named: Named, node: Node) -> None:
    """Note which size a node gives, if it gives one; asked in the order of the graph."""
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        named.setdefault(as_size(value), node)


def written_out(before: Node, size: Size, named: Named) -> Any:
    """Return an int or a node for sums, products, quotients, least and greatest of sizes that nodes give.

    Args:
        before: what uses it: what has to be computed stands before that.
        size: the size.
        named: the nodes before that.

    Returns:
        ``None`` for any other expression, or where a size has no node.
    """
    size = as_size(size)
    if isinstance(size, int) or size in named:
        return size if isinstance(size, int) else named[size]
    target = _operation(size)
    if target is None:
        return None
    parts = [size.base] * int(size.exp) if size.is_Pow else list(size.args)
    total = written_out(before, parts[0], named)
    for part in parts[1:]:
        other = written_out(before, part, named)
        if total is None or other is None:
            return None
        total = computed(before, target, total, other)
    return total


def _operation(size: Any) -> Any:
    """Return what computes an expression of the values of its parts, ``None`` where nothing here does."""
    if size.is_Add:
        return operator.add
    if size.is_Mul or (size.is_Pow and size.exp.is_Integer and size.exp > 0):
        return operator.mul
    functions = {floor_division: operator.floordiv, greater: torch.sym_max}
    functions[lesser] = torch.sym_min
    # A quotient that is known to be whole is of a class of its own below that of quotients.
    return next((target for kind, target in functions.items() if isinstance(size, kind())), None)


def computed(before: Node, target: Any, left: Any, right: Any) -> Node:
    """Return a node before another one that computes a size of two; these are ints or nodes."""
    with before.graph.inserting_before(before):
        node = before.graph.call_function(target, (left, right))
    node.meta["val"] = target(_value(left), _value(right))
    return node


def _value(size: Any) -> Any:
    return size.meta["val"] if isinstance(size, Node) else size
