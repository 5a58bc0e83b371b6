"""What the judge asks about the nodes of a graph: names, schemas, views."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.fx import Graph, Node

V1, V2 = "auto_functionalized", "auto_functionalized_v2"
TRITON, TRITON_CALL = "triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation"
SCATTERS = frozenset(f"aten::{view}_scatter" for view in ("slice", "select", "diagonal", "as_strided"))
CLONE, COPY = "aten::clone", "aten::copy_"


def name_of(target: Any) -> str:
    """Return an operator's name without overload, else the text of a target."""
    name = getattr(target, "name", None)
    if callable(name):
        return str(name()).partition(".")[0]
    return str(target)


def op_of(node: Node) -> str:
    """Return the name of what a node calls, empty for anything but a call."""
    return name_of(node.target) if node.op == "call_function" else ""


def _arguments(target: Any) -> list[Any]:
    schema = getattr(target, "_schema", None)
    return list(schema.arguments) if schema is not None else []


def mutable_arguments(target: Any) -> list[str]:
    """Return the names of the arguments that an operator writes, in schema order."""
    return [a.name for a in _arguments(target) if a.alias_info is not None and a.alias_info.is_write]


def returns_count(target: Any) -> int:
    """Return how many values an operator returns."""
    return len(target._schema.returns)


def argument(node: Node, name: str) -> Any:
    """Return an argument of a call by its name in the schema, ``None`` where it was left out."""
    if name in node.kwargs:
        return node.kwargs[name]
    for position, known in enumerate(_arguments(node.target)):
        if known.name == name and position < len(node.args):
            return node.args[position]
    return None


def written_operand(node: Node) -> Any:
    """Return the operand that an in-place call writes and returns, ``None`` for any other node."""
    names = mutable_arguments(node.target) if node.op == "call_function" else []
    return _aliased(node) if names and argument(node, names[0]) is _aliased(node) else None


def _aliased(node: Node) -> Any:
    """Return the operand whose storage a call's result lies in, ``None`` for a fresh result."""
    if node.op != "call_function":
        return None
    if node.target is operator.getitem:
        source: Any = node.args[0]
        return _aliased(source) if is_node(source) else None
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.returns or schema.returns[0].alias_info is None:
        return None
    result = schema.returns[0].alias_info
    for known in schema.arguments:
        alias = known.alias_info
        if alias is not None and alias.before_set & result.before_set:
            return argument(node, known.name)
    return None


def is_node(value: Any) -> bool:
    """Return whether a value is a node of a graph."""
    from torch.fx import Node

    return isinstance(value, Node)


def root_of(node: Any) -> Any:
    """Return the node that made the storage a value lies in: views and in-place calls are looked through."""
    while is_node(node):
        source = _aliased(node)
        if not is_node(source):
            return node
        node = source
    return node


def calls(graph: Graph) -> list[Node]:
    """Return the calls of a graph, in order."""
    return [node for node in graph.nodes if node.op == "call_function"]


def element(value: Any, arg: str) -> Any:
    """Return ``value``, or its element where an argument as labels name it ends in ``[i]``."""
    _, bracket, index = arg.partition("[")
    if bracket and isinstance(value, list | tuple):
        return value[int(index.rstrip("]"))]
    return value


def wrapped(node: Node) -> Any:
    """Return what a wrapper calls: an operator, or the index of a Triton kernel."""
    return node.kwargs["kernel_idx"] if op_of(node) in (TRITON, TRITON_CALL) else node.args[0]


def base_number(node: Node, arg: str) -> int | None:
    """Return the number of the base that an argument of a v2 wrapper is a view of."""
    name, bracket, index = arg.partition("[")
    if name == "base" and bracket and f"_base_{index.rstrip(']')}_base_index" not in node.kwargs:
        return int(index.rstrip("]"))
    key = f"_{name}_{index.rstrip(']')}_base_index" if bracket else f"_{name}_base_index"
    number = node.kwargs.get(key)
    return number if isinstance(number, int) else None


def result_argument(node: Node, key: Any) -> str | None:
    """Return which argument of a wrapper its result ``key`` is the new value of; of v2 wrappers, the base."""
    kind = op_of(node)
    if kind == TRITON:
        return str(key)
    if kind not in (V1, V2):
        return None
    position = key - max(1, returns_count(node.args[0]))
    if position < 0:
        return None
    return f"base[{position}]" if kind == V2 else mutable_arguments(node.args[0])[position]


def operand(node: Node, arg: str) -> Any:
    """Return the operand of a functional call that a candidate's argument stands for."""
    kind = op_of(node)
    if kind == V2:
        number, bases = base_number(node, arg), node.kwargs["_all_bases"]
        return None if number is None else bases[number]  # type: ignore[index]
    if kind == V1:
        return element(node.kwargs.get(arg.partition("[")[0]), arg)
    if kind == TRITON:
        return node.kwargs["kwargs"].get(arg)  # type: ignore[union-attr]
    return element(argument(node, arg.partition("[")[0]), arg)
