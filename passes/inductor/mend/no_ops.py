"""Drops what changes nothing, in the place of Inductor's own no-op removal, which is switched off.

A view that is its operand goes, and so does a copy, unless it keeps two values apart:

* two outputs, or an output and an input, would begin to share storage;
* what is copied is written while the copy is still wanted: by an epilogue, or by what may be put in place
  and would have to copy more.

What stays is an ordinary ``aten.clone``, which patterns know and the partitioner may compute again: nothing
is hidden from them, and nothing that could be dropped stands in their way. Who shares storage with whom is
asked anew after each removal. Arithmetic with constants that changes nothing (``x + zeros``) Inductor folds
away after us: where that would bring two values together, a clone is put behind it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Graph, Node

from ... import _torch
from ...graph.alias import bases, is_view, uses, viewed, written
from ...graph.emit import Emitter, is_dense
from ...graph.sizes import fake_mode_of
from ...memory.geometry import Geometry
from ...memory.region import Region
from ...ops.identities import handed_on
from ...ops.schema import is_operator, traits_of
from ...ops.wrapper import operands
from ...ops.wrapper_names import wraps_operator
from ..defects import defended
from .times import Times

aten: Any = torch.ops.aten


def is_ours() -> bool:
    """Return whether no-ops are dropped here, and not by Inductor."""
    return defended("late-epilogue") and defended("merged-outputs")


def remove(graph: Graph) -> None:
    """Drop views and copies that change nothing and keep nothing apart; what stays is an ``aten.clone``."""
    sharing = _Sharing(graph)
    emitter = Emitter(graph, fake_mode_of(graph))
    geometry = Geometry(getattr(emitter.fake_mode, "shape_env", None))
    for node in list(graph.nodes):
        source = handed_on(node)
        operand = source or folded(node)
        if operand is None or not _is_alike(geometry, node, operand, is_laid_out=source is not None):
            continue
        goes = is_view(node) or sharing.unite(node, operand)
        if source is None:
            if not goes:
                _copy_behind(emitter, node)
        elif goes:
            _replace(emitter, node, source)
        elif is_dense(source.meta["val"]):
            node.target, node.args, node.kwargs = aten.clone.default, (source,), {}


def folded(node: Node) -> Node | None:
    """Return the operand that Inductor may put in the place of a node whose other one is a constant."""
    if not traits_of(node.target).is_neutral:
        return None
    given = [n for n in node.args[:2] if isinstance(n, Node)]
    varying = [n for n in given if not _is_constant(n)]
    return varying[0] if len(varying) == 1 and len(given) == 2 else None


def _is_constant(node: Node) -> bool:
    """Return whether a value is made of nothing in a few steps."""
    pending, seen = [node], 0
    while pending and seen < 16:
        node = pending.pop()
        seen += 1
        if node.op == "placeholder":
            return False
        pending.extend(node.all_input_nodes)
    return not pending


def _is_alike(geometry: Geometry, node: Node, operand: Node, *, is_laid_out: bool) -> bool:
    """Return whether a value has all that another has, and is laid out like it where that is asked for."""
    new, old = node.meta.get("val"), operand.meta.get("val")
    if not isinstance(new, torch.Tensor) or not isinstance(old, torch.Tensor):
        return False
    if any(getattr(new, name) != getattr(old, name) for name in ("dtype", "device", "layout")):
        return False
    if new.layout != torch.strided or (new.is_conj(), new.is_neg()) != (old.is_conj(), old.is_neg()):
        return False
    if new.dim() != old.dim():
        return False
    a, b = Region.of(new), Region.of(old)
    pairs = list(zip(a.sizes, b.sizes, strict=True))
    if is_laid_out:
        pairs += zip(a.strides, b.strides, strict=True)
        pairs += [(a.offset, b.offset)] if is_view(node) else []
    return all(geometry.equal(one, other) for one, other in pairs)


def _replace(emitter: Emitter, node: Node, source: Node) -> None:
    """Put what a node equals in its place.

    Views of a copy say now whose storage they share: by that the partitioner tells which values are outputs.
    """
    views = [] if is_view(node) else [user for user, name in uses(node) if viewed(user) is name]
    node.replace_all_uses_with(source)
    for view in views:
        view.meta["val"] = emitter.value(view)
    node.graph.erase_node(node)


def _copy_behind(emitter: Emitter, node: Node) -> None:
    """Let all users of a node use a copy of it."""
    copy = emitter.clone(node.next, node)
    for user in [u for u in node.users if u is not copy]:
        user.replace_input_with(node, copy)


@dataclasses.dataclass(slots=True)
class _Storage:
    """What is known of the values that share a storage.

    Args:
        is_given: whether an input is among them, or what an epilogue stores, which may become the input.
        is_returned: whether an output is.
        read: when one of them is read last.
        writes: when one of them is written.
        may_write: when one of them may be written in place.
        copied: when one of them would have to be copied for that, were it still wanted.
    """

    is_given: bool = False
    is_returned: bool = False
    read: float = -1
    writes: list[int] = dataclasses.field(default_factory=list)
    may_write: list[int] = dataclasses.field(default_factory=list)
    copied: list[int] = dataclasses.field(default_factory=list)

    def is_seen_with(self, copy: _Storage) -> bool:
        """Return whether somebody outside could tell that a copy shares this storage."""
        return copy.is_returned and (self.is_returned or self.is_given)

    def is_spoiled_for(self, copy: _Storage, since: int) -> bool:
        """Return whether a copy, made at some time, is still wanted when this is written, or may be.

        What may be is written in place only where nobody wants the old values but by the copy.
        """
        if copy.writes or any(since < at <= copy.read for at in self.writes):
            return True
        stays = self.is_returned or (self.is_given and not self.writes)
        if any(stays or self.read > at for at in copy.copied):
            return True  # the program's own copy, instead of another one later
        if stays:
            return False
        return any(since < at <= copy.read and self.read <= at for at in self.may_write)

    def take(self, other: _Storage) -> None:
        """Add what is known of values that share this storage from now on."""
        self.is_given |= other.is_given
        self.is_returned |= other.is_returned
        self.read = max(self.read, other.read)
        self.writes += other.writes
        self.may_write += other.may_write
        self.copied += other.copied


class _Sharing:
    """Which values of a graph share storage, and what happens to it.

    Args:
        graph: any graph, as it is now.
    """

    def __init__(self, graph: Graph) -> None:
        self._base = bases(graph)
        self._known: dict[Node, _Storage] = {base: _Storage() for base in self._base.values()}
        self._times = Times(graph)
        for node in graph.nodes:
            self._add(node)

    def unite(self, copy: Node, operand: Node) -> bool:
        """Let a copy share the storage of its operand, if it may; returns whether it does."""
        new, old = self._storage(copy), self._storage(operand)
        if old.is_seen_with(new) or old.is_spoiled_for(new, self._times.order[copy]):
            return False
        old.take(new)
        self._known[self._base[copy]] = old
        return True

    def _storage(self, node: Node) -> _Storage:
        return self._known[self._base[node]]

    def _add(self, node: Node) -> None:
        """Note what a node does with the storages of its operands."""
        at = self._times.of(node)
        self._storage(node).is_given |= node.op in ("placeholder", "get_attr")
        for value in _may_write(node):
            self._storage(value).may_write.append(at)
            if not traits_of(node.target).is_computed_scatter:
                self._storage(value).copied.append(at)
        stored = written(node)
        for value in stored:
            self._storage(value).writes.append(at)
        for value in node.all_input_nodes:
            storage = self._storage(value)
            storage.is_returned |= node.op == "output"
            storage.is_given |= bool(stored) and node.target is aten.copy_.default
            if value not in stored:
                storage.read = math.inf if node.op == "output" else max(storage.read, at)


def _may_write(node: Node) -> Iterable[Node]:
    """Return what a functional call may write in place of a copy."""
    if node.target is _torch.hop("triton_kernel_wrapper_functional"):
        launched: Any = node.kwargs["kwargs"]
        values = [launched[name] for name in node.kwargs["tensors_to_clone"]]  # type: ignore[union-attr]
    elif wraps_operator(node.target):
        values = list(operands(node).values()) if is_operator(node.args[0]) else []
    else:
        traits = traits_of(node.target)
        values = list(node.args[:1]) if traits.is_scatter or traits.copies_first else []
    return [value for value in values if isinstance(value, Node)]
