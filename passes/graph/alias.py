"""What a value of an FX graph is a view of, who uses it through views, and what a call writes.

Any graph will do, functional or not. What a call writes and returns is another name of its operand here, as a
view of all of it would be. Each question costs as many steps as there are views to go through; who asks for
every node of a graph asks for all bases at once, which is one walk.

Of what runs subgraphs nothing is known here: see ``summary.py``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.fx import Graph, Node

from .. import _torch
from ..memory.region import Region, Size, as_size
from ..ops.nested import nodes
from ..ops.schema import argument, is_operator, schema_of

aten: Any = torch.ops.aten
_WRITTEN = "reinplace_written"


def viewed(node: Node) -> Node | None:
    """Return the operand that a node is a view of, ``None`` where it is no view.

    One of several views, as ``split`` makes them, is a view of the call that makes them.
    """
    if node.op != "call_function":
        return None
    if node.target is operator.getitem:
        source = node.args[0]
        return source if isinstance(source, Node) and is_view(source) else None
    if not is_operator(node.target):
        return None
    schema = schema_of(node.target)
    return _first(argument(node, str(schema.returns[0]))) if schema.view else None


def behind_views(node: Node) -> Node:
    """Return what a node is a view of, and no view itself; the node where it is none."""
    while (source := viewed(node)) is not None:
        node = source
    return node


def is_view(node: Node) -> bool:
    """Return whether a node is a view of an operand, or one or all of several views."""
    return viewed(node) is not None


def alias_of(node: Node) -> Node | None:
    """Return the operand whose bytes a node names: what it is a view of, or what it writes and returns."""
    source, result = viewed(node), 0
    if source is not None or node.op != "call_function":
        return source
    call: Any = node
    if node.target is operator.getitem:
        call, result = node.args  # type: ignore[assignment]
    if not isinstance(call, Node) or not is_operator(call.target) or not schema_of(call.target).mutable:
        return None
    returns = schema_of(call.target).returns
    if (len(returns) > 1) is (call is node) or not isinstance(result, int) or result >= len(returns):
        return None
    name = returns[result]
    return _first(argument(call, name)) if name is not None else None


def chain(node: Node) -> Iterator[Node]:
    """Yield a node, what it is a view of, and so on to what is no view."""
    current: Node | None = node
    while current is not None:
        yield current
        current = alias_of(current)


def base_of(node: Node) -> Node:
    """Return the value whose bytes a node names; itself where these are its own."""
    *_, base = chain(node)
    return base


def bases(graph: Graph) -> dict[Node, Node]:
    """Return the base of every node of a graph."""
    found: dict[Node, Node] = {}
    for node in graph.nodes:
        source = alias_of(node)
        found[node] = node if source is None else found[source]
    return found


def begin_of(node: Node) -> Size:
    """Return how many elements of its storage lie before a value."""
    val = node.meta.get("val")
    return as_size(val.storage_offset()) if isinstance(val, torch.Tensor) else 0


def shared_by_inputs(val: torch.Tensor) -> Any:
    """Return what two inputs of a program have in common that may share a byte, one of them written.

    AOTAutograd makes one input of those that overlap. Where those of one storage do not, and a size, a stride
    or an offset is a symbol, it guards that (``StorageOverlap``): then only the same bytes are shared, by
    tensors inside of tensors of a subclass. With numbers alone nothing guards a later call.
    """
    region = Region.of(val)
    key = _torch.storage_key(val)
    return key if region.static or key is None else (key, region)


def uses(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield what uses a value, through views, each with the name of it that it uses; views are users, too."""
    pending = [node]
    while pending:
        value = pending.pop()
        for user in value.users:
            yield user, value
            if alias_of(user) is value:
                pending.append(user)


def written(node: Node) -> list[Node]:
    """Return what a call writes, once for each argument that it writes it through.

    A kernel of Triton's may write whatever it is given, where it is not noted (``note_written``).
    """
    if node.op != "call_function":
        return []
    if not is_operator(node.target):
        if node.target is not _torch.hop("triton_kernel_wrapper_mutation"):
            return []
        given: Any = node.kwargs["kwargs"]
        return nodes([given[name] for name in node.meta.get(_WRITTEN, given)])
    names = schema_of(node.target).all_mutable
    return [n for name in names for n in nodes(argument(node, name))] if names else []


def is_epilogue(node: Node) -> bool:
    """Return whether a node gives an input its value after the call, as functionalization ends a graph."""
    given: Any = node.args[0] if node.target is aten.copy_.default and node.args else None
    return isinstance(given, Node) and given.op == "placeholder"


def note_written(launch: Node, names: Iterable[str]) -> None:
    """Note which of its arguments a kernel of Triton's writes, which only its functional launch says."""
    launch.meta[_WRITTEN] = tuple(names)


def _first(value: Any) -> Node | None:
    """Return an argument that is a node, or the first one of its nodes."""
    return value if isinstance(value, Node) else next(iter(nodes(value)), None)
