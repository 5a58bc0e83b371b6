"""What the judge asks about the nodes of a graph: names, schemas, views, and who made a value."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from ..base import _torch

if TYPE_CHECKING:
    from torch.fx import Node

V1, V2 = "auto_functionalized", "auto_functionalized_v2"
TRITON, TRITON_CALL = "triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation"
WRAPPERS = frozenset((V1, V2, TRITON))
SCATTERS = frozenset(f"aten::{view}_scatter" for view in ("slice", "select", "diagonal", "as_strided"))
CLONE, COPY = "aten::clone", "aten::copy_"


def is_node(value: Any) -> bool:
    """Return whether a value is a node of a graph."""
    from torch.fx import Node

    return isinstance(value, Node)


def is_tensor(value: Any) -> bool:
    """Return whether a value is a node that stands for a tensor."""
    import torch

    return is_node(value) and isinstance(value.meta.get("val"), torch.Tensor)


def nbytes(value: Any) -> int:
    """Return the bytes of a tensor, of hinted sizes, repeated ones once; 0 for anything else."""
    if not is_tensor(value):
        return 0
    val = value.meta["val"]
    count: int = val.element_size()
    for size, stride in zip(val.shape, val.stride(), strict=True):
        if stride != 0:  # an expanded dimension holds one element
            count *= _torch.size_hint(size)
    return count


def name_of(target: Any) -> str:
    """Return an operator's name without overload, else the text of a target.

    Inductor's own passes also leave operators whose overload is chosen when they are called.
    """
    name = getattr(target, "name", None)
    if callable(name):
        return str(name()).partition(".")[0]
    return str(getattr(target, "_qualified_op_name", target))


def op_of(node: Any) -> str:
    """Return the name of what a node calls, empty for anything but a call."""
    return name_of(node.target) if is_node(node) and node.op == "call_function" else ""


def family(node: Any) -> str:
    """Return what the functional and the in-place form of an operator share, empty for other nodes."""
    _, colons, name = op_of(node).rpartition("::")
    return name.removeprefix("_unsafe_").rstrip("_") if colons else ""


def is_drawing(node: Node) -> bool:
    """Return whether a call draws random numbers, which is a kernel of its own where it stays an operator."""
    import torch

    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


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


def element(value: Any, arg: str) -> Any:
    """Return ``value``, or its element where an argument as labels name it ends in ``[i]``."""
    _, bracket, index = arg.partition("[")
    if bracket and isinstance(value, list | tuple):
        return value[int(index.rstrip("]"))]
    return value


# -- where a value lies -------------------------------------------------------------------------------


def _aliased(node: Any) -> Any:
    """Return the operand whose storage a call's result lies in, ``None`` for a fresh result."""
    if not is_node(node) or node.op != "call_function":
        return None
    if node.target is operator.getitem:
        return _aliased(node.args[0])
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.returns or schema.returns[0].alias_info is None:
        return None
    result = schema.returns[0].alias_info
    for known in schema.arguments:
        alias = known.alias_info
        if alias is not None and (alias.before_set & result.before_set or _is_of_many(alias)):
            return argument(node, known.name)
    return None


def _is_of_many(alias: Any) -> bool:
    """Return whether an operand is what a list of views is made of, as ``split`` makes it: ``a -> *``."""
    return not alias.is_write and "*" in alias.after_set


def root_of(value: Any, known: dict[Any, Any] | None = None) -> Any:
    """Return the node that made the storage a value lies in: views and in-place calls are looked through.

    Args:
        value: a node, or any other argument, which is its own root.
        known: roots found before, filled and used so that long chains are walked once.
    """
    passed = []
    while is_node(value) and (known is None or value not in known):
        source = _aliased(value)
        if not is_node(source):
            break
        passed.append(value)
        value = source
    if known is not None and is_node(value):
        value = known.setdefault(value, value)
        known.update((node, value) for node in passed)
    return value


def written_operand(node: Any) -> Any:
    """Return the operand that an in-place call writes and returns, ``None`` for any other node."""
    names = mutable_arguments(node.target) if op_of(node) else []
    found = _aliased(node) if names else None
    return found if found is not None and argument(node, names[0]) is found else None


# -- wrappers -----------------------------------------------------------------------------------------


def wrapped(node: Node) -> Any:
    """Return what a wrapper calls: an operator, or the index of a Triton kernel."""
    return node.kwargs["kernel_idx"] if op_of(node) in (TRITON, TRITON_CALL) else node.args[0]


def slot_of(node: Node, arg: str) -> str:
    """Return the operand that an argument of a candidate stands for: of a v2 wrapper, the base."""
    if op_of(node) != V2:
        return arg
    name, bracket, index = arg.partition("[")
    item = index.rstrip("]")
    base = node.kwargs.get(f"_{name}_{item}_base_index" if bracket else f"_{name}_base_index")
    return arg if base is None else f"base[{base}]"


def is_part(node: Node, arg: str) -> bool:
    """Return whether an argument of a v2 wrapper is a view of its base, and not the base itself."""
    prefix = "_" + arg.rstrip("]").replace("[", "_")
    return f"{prefix}_slice_dim" in node.kwargs or f"{prefix}_storage_offset" in node.kwargs


def operand(node: Node, arg: str) -> Any:
    """Return the operand of a functional call that a candidate's argument, or its slot, stands for."""
    kind, name = op_of(node), arg.partition("[")[0]
    if kind == V2:
        return element(node.kwargs["_all_bases"], slot_of(node, arg))
    if kind == V1:
        return element(node.kwargs.get(name), arg)
    if kind == TRITON:
        inner: Any = node.kwargs["kwargs"]
        return inner.get(arg)
    return element(argument(node, name), arg)


def maker_of(value: Any) -> tuple[Node, str] | None:
    """Return the wrapper that made a value, and the slot that the value is the new content of."""
    keys: list[Any] = []
    while is_node(value) and value.target is operator.getitem:
        keys.insert(0, value.args[1])
        value = value.args[0]
    kind = op_of(value)
    if kind not in WRAPPERS or not keys:
        return None
    if kind == TRITON:
        return value, str(keys[0])
    position = keys[0] - max(1, returns_count(value.args[0]))
    if position < 0:
        return None
    if kind == V2:
        return value, f"base[{position}]"
    name = mutable_arguments(value.args[0])[position]
    return value, f"{name}[{keys[1]}]" if len(keys) > 1 else name


def clones_slot(node: Node, slot: str) -> bool:
    """Return whether a wrapper that is still there was told to clone the operand of a slot."""
    if op_of(node) == TRITON:
        cloned: Any = node.kwargs["tensors_to_clone"]
        return slot in cloned
    told = node.meta.get("only_clone_these_tensors")
    name, bracket, index = slot.partition("[")
    if op_of(node) == V2 and not bracket:  # an output: the wrapper makes an empty tensor for it
        return True
    wanted = int(index.rstrip("]")) if op_of(node) == V2 else name
    return told is None or wanted in told
