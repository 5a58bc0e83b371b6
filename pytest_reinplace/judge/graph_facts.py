"""What the judge asks about the nodes of a graph: names, schemas, views, and who made a value."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from ..base import _torch

if TYPE_CHECKING:
    from torch.fx import Node

    from pytest_reinplace.passes.facts import BaseView

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


def listed(value: Any) -> tuple[Any, ...]:
    """Return what a graph returns, which may be one value alone, as a tuple."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


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
    from pytest_reinplace.passes import facts

    return facts.is_operator(node.target) and facts.schema_of(node.target).seeded


def mutable_arguments(target: Any) -> tuple[str, ...]:
    """Return the names of the arguments that an operator writes, in schema order."""
    from pytest_reinplace.passes import facts

    return facts.schema_of(target).mutable if facts.is_operator(target) else ()


def argument(node: Node, name: str) -> Any:
    """Return an argument of a call by its name in the schema, ``None`` where it was left out."""
    from pytest_reinplace.passes import facts

    return facts.argument(node, name) if facts.is_operator(node.target) else node.kwargs.get(name)


def element(value: Any, arg: str) -> Any:
    """Return ``value``, or its element where an argument as labels name it ends in ``[i]``."""
    _, bracket, index = arg.partition("[")
    if bracket and isinstance(value, list | tuple):
        return value[int(index.rstrip("]"))]
    return value


def root_of(value: Any, known: dict[Any, Any] | None = None) -> Any:
    """Return the node that made the storage a value lies in: views and in-place calls are looked through.

    Args:
        value: a node, or any other argument, which is its own root.
        known: roots found before, filled and used so that long chains are walked once.
    """
    from pytest_reinplace.passes import facts

    known = {} if known is None else known
    passed = []
    while is_node(value) and value not in known:
        passed.append(value)
        source = facts.alias_of(value)
        if source is None:
            break
        value = source
    root = known.get(value, value) if is_node(value) else value
    known.update((node, root) for node in passed)
    return root


def written_operand(node: Any) -> Any:
    """Return the operand that an in-place call writes and returns, ``None`` for any other node."""
    from pytest_reinplace.passes import facts

    names = mutable_arguments(node.target) if op_of(node) else ()
    found = facts.alias_of(node) if names else None
    return found if found is not None and argument(node, names[0]) is found else None


# -- wrappers -----------------------------------------------------------------------------------------


def called(node: Node) -> Any:
    """Return what a wrapper calls: an operator, or the index of a Triton kernel."""
    return node.kwargs["kernel_idx"] if op_of(node) in (TRITON, TRITON_CALL) else node.args[0]


def _view(node: Node, arg: str) -> BaseView | None:
    """Return how an argument of a v2 wrapper is made from its base."""
    from pytest_reinplace.passes import facts

    return next((view for view in facts.base_views(node) if view.label == arg), None)


def slot_of(node: Node, arg: str) -> str:
    """Return the operand that an argument of a candidate stands for: of a v2 wrapper, the base."""
    view = _view(node, arg) if op_of(node) == V2 else None
    return arg if view is None or view.base is None else f"base[{view.base}]"


def is_part(node: Node, arg: str) -> bool:
    """Return whether an argument of a v2 wrapper is a view of its base, and not the base itself."""
    view = _view(node, arg) if op_of(node) == V2 else None
    return view is not None and view.form != "base"


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
    from pytest_reinplace.passes import facts

    keys: list[Any] = []
    while is_node(value) and value.target is operator.getitem:
        keys.insert(0, value.args[1])
        value = value.args[0]
    kind = op_of(value)
    if kind not in WRAPPERS or not keys:
        return None
    if kind == TRITON:
        return value, str(keys[0])
    position = keys[0] - facts.first_result(value)
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
