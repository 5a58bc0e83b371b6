"""Wrappers that clone the bases of what an operator writes (``auto_functionalized_v2``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from ... import _torch
from ...graph.alias import begin_of
from ...graph.emit import Emitter, eager_values, like
from ...memory.region import Size, as_size
from ...ops import wrapper
from ...ops.schema import schema_of, target_name
from ...reason import Reason
from ..facts.candidate import Candidate, Kind, PartCopy
from ..facts.model import Model
from ..facts.place import Value, is_known
from ..write.rewriter import Rewriter
from . import wrapper_results
from .record import Others, add

aten: Any = torch.ops.aten
KIND = Kind(of_bases=True, clones_early=True, begins="padded")


def sees_to(node: Node) -> bool:
    """Return whether a node is a v2 wrapper; those of outputs are a kind of their own."""
    return node.target is _torch.hop("auto_functionalized_v2")


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace a v2 wrapper by its operator, on views of the bases or of clones of them."""
    op: Any = node.args[0]
    bases: list[Any] = list(node.kwargs["_all_bases"])  # type: ignore[arg-type]
    first = len(node.meta["val"]) - len(bases)
    moved: list[Size] = [0] * len(bases)
    for candidate in candidates:
        i = int(candidate.slot)  # type: ignore[arg-type]
        old = candidate.operand.value
        if rewriter.decision.accepted(candidate):
            moved[i] = rewriter.shift_of(candidate.operand)
        else:
            bases[i] = rewriter.operand(node, candidate, bases[i], node.meta["val"][first + i])
            moved[i] = begin_of(bases[i]) - as_size(old.storage_offset())
    parts, copied, emitter = _parts(rewriter, node, candidates), list[tuple[Node, Node]](), rewriter.emitter

    def given(view: wrapper.BaseView, made: Any) -> Any:
        part = parts.get(view.label)
        if part is None:
            return made
        copied.append((made, (emitter.empty if part.write_only else emitter.clone)(node, made)))
        return copied[-1][1]

    call, by_name = called(emitter, node, bases, moved, given)
    for view, copy in copied:  # put back: nothing came in between but the call itself
        rewriter.emitter.store(node, view, copy)
    first = wrapper.first_result(node)
    # What the operator hands back is the view, also where it worked on a copy that was put back.
    written = {**wrapper_results.handed_back(op, by_name), **dict(enumerate(bases, first))}
    wrapper_results.hand_out(rewriter, node, call, written)


def called(
    emitter: Emitter,
    node: Node,
    bases: Sequence[Node],
    moved: Sequence[Size],
    given: Callable[[wrapper.BaseView, Any], Any] = lambda view, made: made,
) -> tuple[Node, dict[str, Any]]:
    """Insert the call of a wrapper's operator; returns it, and its arguments, views by their labels.

    Args:
        emitter: makes nodes of the graph.
        node: the wrapper.
        bases: what stands for its bases.
        moved: by how many items the storage of each begins elsewhere than that of the wrapper's base.
        given: what the operator is given for a view; by default the view itself.
    """
    views, eager = wrapper.base_views(node), eager_values(node)
    made_of: dict[str, list[Any]] = {}
    lying: dict[str, Any] = {}
    for view in views:
        base = view.base
        made = None if base is None else emitter.base_view(node, bases[base], view, moved[base])
        lying[view.label] = made
        made_of.setdefault(view.name, []).append(given(view, made))
    by_name = _arguments(node, made_of)
    if eager is not None:
        eager = {**eager, **_eager_views(emitter, node, eager, views, lying)}
    return emitter.mutable_op(node, node.args[0], by_name, eager), {**by_name, **lying}


def _arguments(node: Node, made_of: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the arguments of a wrapper's operator, given the views that it writes."""
    by_name: dict[str, Any] = {}
    kwargs = node.kwargs
    for name in schema_of(node.args[0]).names:
        mine = made_of.get(name, [])
        if f"_{name}_length" in kwargs:
            by_name[name] = None if kwargs[f"_{name}_length"] is None else mine
        elif mine:
            by_name[name] = mine[0]
        elif name in kwargs:
            by_name[name] = kwargs[name]
    return by_name


def _parts(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> dict[str, PartCopy]:
    """Return the views of a v2 wrapper that its operator writes in copies, by their labels."""
    found: dict[str, PartCopy] = {}
    for candidate in candidates:
        for part in rewriter.decision.part_copies.get(candidate.index, ()):
            mine = [v.label for v in wrapper.base_views(node) if v.base == candidate.slot]
            found[mine[part.view]] = part
    return found


def _eager_views(
    emitter: Emitter,
    node: Node,
    eager: dict[str, Any],
    views: list[wrapper.BaseView],
    made: dict[str, Any],
) -> dict[str, Any]:
    """Return the eager values of the mutated arguments of a v2 wrapper: who asks goes by their strides."""
    values: dict[str, Any] = {}
    for view in views:
        value = None if view.base is None else eager["_all_bases"][view.base]
        if value is not None and view.form != "base":
            val = made[view.label].meta["val"]
            strides = value.stride() if view.form == "slice" else val.stride()
            if emitter.views.is_plain(val) and strides == val.stride():
                value = emitter.views.like(val)
            else:
                shape = val.size(), strides
                value = _torch.run_fake(emitter.fake_mode, aten.empty_strided.default, shape, like(val))
        if view.item is None:
            values[view.name] = value
        else:
            values.setdefault(view.name, []).append(value)
    for name in schema_of(node.args[0]).mutable:
        if node.kwargs.get(f"_{name}_length", 0) is None:
            values[name] = None
    return values


def visit(model: Model, node: Node) -> bool:
    """Add the candidates of a v2 wrapper: the bases of what its operator writes."""
    opened = wrapper_results.opened(model, node)
    if opened is None:
        return True
    results, others = opened
    bases: Any = node.kwargs["_all_bases"]
    views = wrapper.base_views(node)
    for i, (base, result) in enumerate(zip(bases, results[len(results) - len(bases) :], strict=True)):
        if model.place(base) is not None:
            _add_base(model, node, i, [v for v in views if v.base == i], result, others)
    return True


def _add_base(
    model: Model, node: Node, i: int, views: list[wrapper.BaseView], result: Value, others: Others
) -> None:
    """Add one base, with the views of it that the operator writes."""
    op: Any = node.args[0]
    base: Any = node.kwargs["_all_bases"][i]  # type: ignore[index]
    place = model.place(base)
    assert place is not None
    storage, obstacle = wrapper_results.settled(model, base, result)
    is_exact = is_known(place)  # else these bytes are more than what is written
    if place.storage.relaid and any(v.form == "as_strided" for v in views):
        obstacle, is_exact = Reason.LAYOUT, False
    at, shift = place.region, place.storage.shift
    writes = tuple(v.region(at, shift) if is_exact else at for v in views)
    labels = tuple((target_name(op), v.label) for v in views) or ((target_name(op), f"base[{i}]"),)
    written = wrapper.write_only(model.geometry, op, [v.name for v in views], at, writes)
    only, hole = written if is_exact else (False, None)
    settled = storage, obstacle
    add(model, KIND, node, i, labels, base, settled, writes, others, hole, only)
