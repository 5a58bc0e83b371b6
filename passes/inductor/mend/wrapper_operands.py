"""Operands of wrappers that stay wrappers, copied here: Inductor would copy from, or use, wrong offsets.

What a wrapper clones Inductor clones by its offset into the whole storage, and finds it in the copy by the
same offset. It does not know that offset where the operand is a view of another dtype, which is a buffer of
its own; where it begins at a symbol; where it is part of an input that begins inside its storage; and where
it is a part of what is computed, or laid out otherwise than row by row: Inductor may compute the part alone,
or in other strides.

So each operand is copied here, by its strides, and the wrapper is given the copy, in which offsets count from
0. Those of a wrapper stay where they are if an offset into the storage of a result says where something lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import Graph, Node

from ... import _torch
from ...graph.alias import begin_of, uses
from ...graph.emit import Emitter
from ...graph.sizes import given, is_named, makes_sizes
from ...ops.nested import LISTS
from ...ops.schema import is_operator, schema_of
from ...ops.views import is_absolute
from ...ops.wrapper import base_views
from ...reinplacing.kinds.kernel_launch import launch
from ..defects import defended

_V1, _V2, _TRITON = "auto_functionalized", "auto_functionalized_v2", "triton_kernel_wrapper_functional"
_MARK = "only_clone_these_tensors"


def copy_operands(graph: Graph) -> int:
    """Copy what the wrappers of a graph would clone; returns how many wrappers were given copies."""
    known = {_torch.hop(name): copy for name, copy in _COPIES.items() if _torch.hop(name) is not None}
    found = [n for n in graph.nodes if n.op == "call_function" and n.target in known]
    count, emitter = 0, Emitter(graph, lowered=True)
    # The last first: with copies they name no bytes of what those before them make.
    for node in reversed(found) if defended("clone-at-an-offset") else ():
        if not (makes_sizes(node) or _is_named_by_offset(node)):
            count += known[node.target](emitter, node)
    return count


def _copy_v1(emitter: Emitter, node: Node) -> bool:
    op = node.args[0] if node.args else None
    if _MARK in node.meta or not is_operator(op):
        return False

    def copied(value: Any) -> Any:
        if isinstance(value, LISTS):
            return [copied(v) for v in value]
        return emitter.clone(node, value) if isinstance(value, Node) else value

    copies = {n: copied(node.kwargs[n]) for n in schema_of(op).mutable if n in node.kwargs}
    node.kwargs = {**node.kwargs, **copies}
    node.meta[_MARK] = []
    return True


def _copy_v2(emitter: Emitter, node: Node) -> bool:
    op = node.args[0] if node.args else None
    if _MARK in node.meta or not is_operator(op):
        return False
    bases: Sequence[Any] = node.kwargs["_all_bases"]  # type: ignore[assignment]
    views = [v for v in base_views(node) if v.form == "as_strided" and v.base is not None]
    begins = [begin_of(bases[view.base]) for view in views]  # type: ignore[index]
    if not all(is_named(begin, given(node.graph)) for begin in begins):
        return False
    moved = {
        f"_{view.key}_storage_offset": emitter.shifted_offset(node, view.data[0], view.data[-1], -begin)
        for view, begin in zip(views, begins, strict=True)
    }
    copies = [emitter.clone(node, base) for base in bases]
    node.kwargs = {**node.kwargs, **moved, "_all_bases": copies}
    node.meta[_MARK] = []
    return True


def _copy_triton(emitter: Emitter, node: Node) -> bool:
    """Launch a kernel on copies; also of views whose bases are named (torch 2.15), to clone those whole."""
    kwargs: Any = node.kwargs["kwargs"]
    names: Any = node.kwargs["tensors_to_clone"]
    copies = {name: emitter.clone(node, kwargs[name]) for name in names}
    launch(emitter, node, {**kwargs, **copies})
    for item in list(node.users):
        item.replace_all_uses_with(copies[item.args[1]])
        node.graph.erase_node(item)
    node.graph.erase_node(node)
    return True


_COPIES: dict[str, Callable[[Emitter, Node], bool]] = {_V1: _copy_v1, _V2: _copy_v2, _TRITON: _copy_triton}


def _is_named_by_offset(node: Node) -> bool:
    """Return whether an offset into the storage of a wrapper's result is part of the graph."""
    return any(is_absolute(user) for item in node.users for user, _ in uses(item))
