"""Operands of wrappers that stay wrappers, which Inductor would copy from, or use at, the wrong offset.

What a wrapper clones Inductor clones by its offset into the whole storage, and finds it in the copy by the
same offset. It does not know that offset where the operand is a view of another dtype, which is a buffer of
its own; where it begins at a symbol; where it is part of an input that begins inside its storage; and where
it is a part of what is computed, or laid out otherwise than row by row: Inductor may compute the part alone,
or in other strides. (Four rows of ``inductor/defects.py``.)

Such an operand is copied here, by its strides, and the wrapper is given the copy, unless an offset into the
storage of a result says where something lies: a copy of ours begins where its elements do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node

from ... import _torch
from ...graph.alias import base_of, begin_of, chain, uses
from ...graph.emit import Emitter
from ...memory.region import Region
from ...ops.schema import is_operator, schema_of
from ...ops.views import is_absolute
from ...ops.wrapper import BaseView, base_views
from ...reinplacing.kinds.kernel_launch import launch
from ..defects import defended
from .input_offsets import counted_from, counts_from_inputs

_V1, _V2, _TRITON = "auto_functionalized", "auto_functionalized_v2", "triton_kernel_wrapper_functional"


def copy_operands(graph: Graph) -> int:
    """Copy the operands of wrappers that Inductor would not find in its own copies; returns how many."""
    wrappers = [(name, _torch.hop(name)) for name in (_V1, _V2, _TRITON)]
    copier = _Copier(graph)
    for name, target in wrappers:
        for node in graph.find_nodes(op="call_function", target=target) if target is not None else ():
            if not _is_named_by_offset(node):
                _COPIES[name](copier, node)
    return copier.count


class _Copier:
    """Makes copies of operands.

    Args:
        graph: the graph.

    Attributes:
        count: how many it made.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.count = 0

    def copied(self, node: Node, operand: Node) -> Node:
        """Return a copy of an operand for a wrapper."""
        self.count += 1
        mode = _torch.fake_mode_of([operand.meta["val"]])
        return Emitter(self._graph, mode, lowered=True).clone(node, operand)


def _copy_v1(copier: _Copier, node: Node) -> None:
    op = node.args[0] if node.args else None
    if "only_clone_these_tensors" in node.meta or not is_operator(op):
        return
    names = [n for n in schema_of(op).mutable if node.kwargs.get(n) is not None]
    chosen = [n for n in names if _is_lost(node.kwargs[n])]
    if chosen:
        copies = {n: copier.copied(node, node.kwargs[n]) for n in chosen}  # type: ignore[arg-type]
        node.kwargs = {**node.kwargs, **copies}
        node.meta["only_clone_these_tensors"] = [n for n in names if n not in chosen]


def _copy_v2(copier: _Copier, node: Node) -> None:
    op = node.args[0] if node.args else None
    if "only_clone_these_tensors" in node.meta or not is_operator(op):
        return
    bases: list[Any] = list(node.kwargs["_all_bases"])  # type: ignore[arg-type]
    views = [view for view in base_views(node) if view.form == "as_strided"]
    found = {i: _counted(node, base, [v for v in views if v.base == i]) for i, base in enumerate(bases)}
    chosen = {i: offsets for i, offsets in found.items() if offsets is not None}
    if chosen:
        bases = [copier.copied(node, base) if i in chosen else base for i, base in enumerate(bases)]
        moved = {key: offset for offsets in chosen.values() for key, offset in offsets.items()}
        node.kwargs = {**node.kwargs, **moved, "_all_bases": bases}
        node.meta["only_clone_these_tensors"] = [i for i in range(len(bases)) if i not in chosen]


def _counted(node: Node, base: Any, views: list[BaseView]) -> dict[str, Any] | None:
    """Return the offsets of views into a base that has to be copied, as they are in the copy.

    Returns:
        By keyword; ``None`` where the base needs no copy, or where one into the copy cannot be named.
    """
    if not _is_lost(base) or (views and _is_dtype_view(base)):
        return None
    counted = {f"_{view.key}_storage_offset": counted_from(node, view.data[-1], base) for view in views}
    return None if any(offset is None for offset in counted.values()) else counted


def _copy_triton(copier: _Copier, node: Node) -> None:
    """Launch a kernel on copies; what it writes several views of by one base (torch 2.15) stays as it is."""
    kwargs: Any = node.kwargs["kwargs"]
    names: Any = node.kwargs["tensors_to_clone"]
    if node.kwargs.get("tensor_bases") or not any(_is_lost(kwargs[name]) for name in names):
        return
    copies = {name: copier.copied(node, kwargs[name]) for name in names}
    launch(Emitter(node.graph, None), node, {**kwargs, **copies})
    for item in list(node.users):
        item.replace_all_uses_with(copies[item.args[1]])
        node.graph.erase_node(item)
    node.graph.erase_node(node)


_COPIES: dict[str, Callable[[_Copier, Node], None]] = {_V1: _copy_v1, _V2: _copy_v2, _TRITON: _copy_triton}


def _is_named_by_offset(node: Node) -> bool:
    """Return whether an offset into the storage of a wrapper's result is part of the graph."""
    return any(is_absolute(user) for item in node.users for user, _ in uses(item))


def _is_lost(operand: Any) -> bool:
    """Return whether Inductor does not know where in its storage the elements of an operand are."""
    val = operand.meta.get("val") if isinstance(operand, Node) else None
    if not isinstance(val, torch.Tensor):
        return False
    begin, base = begin_of(operand), base_of(operand)
    if base.op not in ("placeholder", "get_attr"):
        is_known = Region.of(val).static and val.is_contiguous()  # of symbols that would be a guard
        return (begin != 0 or not is_known) and defended("clone-of-a-part")
    if begin == 0:
        return False
    if not isinstance(begin, int):
        return defended("clone-at-a-symbol")
    if _is_dtype_view(operand):
        return defended("clone-of-a-dtype-view")
    return begin_of(base) != 0 and counts_from_inputs() and defended("clone-of-an-input")


def _is_dtype_view(node: Node) -> bool:
    return any(n.target is torch.ops.aten.view.dtype for n in chain(node))
