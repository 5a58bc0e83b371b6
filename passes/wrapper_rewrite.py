"""Rewriting wrappers of mutable operators to the operators themselves: v1, v2 and Triton kernels."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from . import _torch, wrapper
from .candidate import Candidate
from .emit import Emitter, eager_values
from .schema import returns_only_none, schema_of
from .staged import Part

if TYPE_CHECKING:
    from .rewriter import Rewriter

aten: Any = torch.ops.aten


def auto_v1(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace a v1 wrapper by its operator, on the operands or on clones of them."""
    op: Any = node.args[0]
    by_name: dict[str, Any] = dict(node.kwargs)
    first = wrapper.first_result(node)
    positions = {name: first + i for i, name in enumerate(schema_of(op).mutable)}
    for candidate in candidates:
        slot: Any = candidate.slot
        name, item = slot if isinstance(slot, tuple) else (slot, None)
        if item is None:
            result = node.meta["val"][positions[name]]
            by_name[name] = rewriter.operand(node, candidate, by_name[name], result)
        else:
            items = list(by_name[name])
            items[item] = rewriter.operand(node, candidate, items[item])
            by_name[name] = items
    call = rewriter.emitter.mutable_op(node, op, by_name, eager_values(node))
    written = {position: by_name[n] for n, position in positions.items()}
    _results(rewriter, node, call, {**written, **_handed_back(op, by_name)}, first)


def _handed_back(op: Any, by_name: dict[str, Any]) -> dict[int, Any]:
    """Return the results of an operator that are arguments which it wrote."""
    return {i: by_name[name] for i, name in enumerate(schema_of(op).returns) if name is not None}


def auto_v2(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace a v2 wrapper by its operator, on views of the bases or of clones of them."""
    op: Any = node.args[0]
    bases: list[Any] = list(node.kwargs["_all_bases"])  # type: ignore[arg-type]
    first = len(node.meta["val"]) - len(bases)
    moved = [0] * len(bases)
    for candidate in candidates:
        i = int(candidate.slot)  # type: ignore[arg-type]
        old = candidate.operand.value
        if rewriter.decision.accepted(candidate):
            moved[i] = rewriter.moved(candidate.operand)
        else:
            bases[i] = rewriter.operand(node, candidate, bases[i], node.meta["val"][first + i])
            moved[i] = bases[i].meta["val"].storage_offset() - old.storage_offset()
    eager = eager_values(node)
    by_name: dict[str, Any] = {}
    views = wrapper.base_views(node)
    on_copies = _OnCopies(rewriter, node, candidates, views) if rewriter.decision.staged else None
    made_of: dict[str, list[Any]] = {}
    lying: dict[str, Any] = {}
    for view in views:
        made = None if view.base is None else _based(rewriter, node, bases, view, moved)
        lying[view.label] = made
        made_of.setdefault(view.name, []).append(on_copies.given(view, made) if on_copies else made)
    for name in schema_of(op).names:
        mine = made_of.get(name, [])
        if f"_{name}_length" in node.kwargs:
            by_name[name] = None if node.kwargs[f"_{name}_length"] is None else mine
        elif mine:
            by_name[name] = mine[0]
        elif name in node.kwargs:
            by_name[name] = node.kwargs[name]
    if eager is not None:
        eager = {**eager, **_eager_views(rewriter, node, eager, views)}
    call = rewriter.emitter.mutable_op(node, op, by_name, eager)
    if on_copies is not None:
        on_copies.put_back()
    first = wrapper.first_result(node)
    # What the operator hands back is the view, also where it worked on a copy that was put back.
    handed = _handed_back(op, {**by_name, **lying})
    _results(rewriter, node, call, {**handed, **{first + i: base for i, base in enumerate(bases)}}, first)


class _OnCopies:
    """The views of a v2 wrapper that its operator writes in copies, which are put back after the call."""

    def __init__(
        self, rewriter: Rewriter, node: Node, candidates: list[Candidate], views: list[wrapper.BaseView]
    ) -> None:
        self._rewriter, self._node = rewriter, node
        self._parts: dict[str, Part] = {}
        self._made: list[tuple[Node, Node]] = []
        staged = rewriter.decision.staged
        for candidate in candidates:
            mine = [v.label for v in views if v.base == candidate.slot]
            for part in staged.get(candidate.index, ()):
                self._parts[mine[part.view]] = part

    def given(self, view: wrapper.BaseView, made: Node | None) -> Node | None:
        """Return what the operator is given for a view: the view, or a copy of it."""
        part = self._parts.get(view.label)
        if part is None or made is None:
            return made
        emitter = self._rewriter.emitter
        copy = (emitter.empty if part.write_only else emitter.clone)(self._node, made)
        self._made.append((made, copy))
        return copy

    def put_back(self) -> None:
        """Write the copies where the views are; nothing came in between but the call itself."""
        for view, copy in self._made:
            put = self._rewriter.emitter.call(self._node, aten.copy_.default, (view, copy))
            put.meta["val"] = view.meta["val"]


def _based(
    rewriter: Rewriter, node: Node, bases: list[Any], view: wrapper.BaseView, moved: list[int]
) -> Node:
    assert view.base is not None
    return rewriter.emitter.base_view(node, bases[view.base], view, moved[view.base])


def _eager_views(
    rewriter: Rewriter, node: Node, eager: dict[str, Any], views: list[wrapper.BaseView]
) -> dict[str, Any]:
    """Return the eager values of the mutated arguments of a v2 wrapper."""
    values: dict[str, Any] = {}
    for view in views:
        value = None if view.base is None else eager["_all_bases"][view.base]
        if value is not None and view.form != "base":
            data = map_arg(view.data, lambda n: n.meta["val"])
            target = aten.slice.Tensor if view.form == "slice" else aten.as_strided.default
            value = _torch.run_fake(rewriter.model.fake_mode, target, (value, *data), {})
        if view.item is None:
            values[view.name] = value
        else:
            values.setdefault(view.name, []).append(value)
    for name in schema_of(node.args[0]).mutable:
        if node.kwargs.get(f"_{name}_length", 0) is None:
            values[name] = None
    return values


# What a functional launch says of its clones; torch 2.15 also names the bases of the views among them.
_OF_CLONES = ("tensors_to_clone", "tensor_bases")


def triton(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace a functional kernel launch by the launch itself, on the operands or on clones of them."""
    inner: dict[str, Any] = dict(node.kwargs["kwargs"])  # type: ignore[arg-type]
    for candidate in candidates:
        name = str(candidate.slot)
        inner[name] = rewriter.operand(node, candidate, inner[name])
    call = launch(rewriter.emitter, node, inner)
    _results(rewriter, node, call, {name: inner[name] for name in inner}, 0)


def launch(emitter: Emitter, node: Node, inner: dict[str, Any]) -> Node:
    """Insert the launch of a kernel before a functional one.

    Args:
        emitter: makes nodes of the graph.
        node: the functional launch.
        inner: the kernel's arguments.
    """
    kwargs = {k: v for k, v in node.kwargs.items() if k not in _OF_CLONES}
    mutation = _torch.hop("triton_kernel_wrapper_mutation")
    call = emitter.call(node, mutation, (), {**kwargs, "kwargs": inner})
    call.meta["val"] = None
    eager = eager_values(node)
    if eager is not None:
        call.meta["eager_input_vals"] = ((), {k: v for k, v in eager.items() if k not in _OF_CLONES})
    return call


def _results(rewriter: Rewriter, node: Node, call: Node, written: dict[Any, Any], first: int) -> None:
    """Give the users of a wrapper's results what the mutable call leaves behind."""
    op: Any = node.args[0] if node.args else None
    val: Any = node.meta.get("val")
    if op is not None:
        several = len(schema_of(op).returns) > 1
        call.meta["val"] = tuple(val[:first]) if several else None if returns_only_none(op) else val[0]
    for user in list(node.users):
        key = user.args[1]
        if key in written:
            _project(rewriter, user, written[key])
        elif op is not None and len(schema_of(op).returns) > 1:
            item = rewriter.emitter.call(user, operator.getitem, (call, key))
            item.meta["val"] = val[key]
            rewriter.replace(user, item)
        else:
            rewriter.replace(user, call)
    rewriter.dead.append(node)


def _project(rewriter: Rewriter, user: Node, value: Any) -> None:
    """Replace a getitem on the wrapper by the tensor, or by the list's elements, that was written."""
    if isinstance(value, Node):
        rewriter.replace(user, value)
        return
    for item in list(user.users) if value is not None else ():
        rewriter.replace(item, value[item.args[1]])
    rewriter.dead.append(user)
