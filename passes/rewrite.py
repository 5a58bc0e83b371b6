"""Carries a decision out: functional nodes become mutable calls, on the operand or on an explicit clone.

The rewrite is whole or not at all: operands are redirected and nodes inserted first, with every change in
a journal; nodes are erased last, when nothing can fail any more.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from . import _torch, scatter, wrapper
from .candidate import Candidate, Kind
from .decide import Decision
from .emit import Emitter, eager_values
from .errors import RewriteError
from .place import Place, Storage
from .schema import is_operator, returns_only_none, schema_of, target_name
from .source import where

aten = torch.ops.aten


def apply(decision: Decision) -> None:
    """Rewrite the decision's graph.

    Raises:
        RewriteError: something went wrong; the graph is as it was before.
    """
    graph = decision.model.graph
    before = [(n, n.args, n.kwargs, dict(n.meta)) for n in graph.nodes]
    rewriter = _Rewriter(decision)
    try:
        for anchor, moved in decision.model.moved.items():
            for node in moved:
                anchor.prepend(node)
        dead = rewriter.run()
        graph.lint()
    except Exception as error:
        _restore(graph, before)
        node = rewriter.current
        at = f"{node.name} ({target_name(node.target)}) at {where(node)}" if node is not None else "the graph"
        raise RewriteError(
            f"rewriting failed at {at}: {type(error).__name__}: {error}; the graph is unchanged"
        ) from error
    _erase(graph, dead)


def _erase(graph: Graph, dead: list[Node]) -> None:
    """Erase replaced nodes, and the views that only they used."""
    pending = list(dead)
    while pending:
        node = pending.pop()
        operands = list(node.all_input_nodes)
        graph.erase_node(node)
        pending.extend(n for n in operands if not n.users and _is_unused_view(n) and n not in pending)


def _is_unused_view(node: Node) -> bool:
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return True
    return is_operator(node.target) and schema_of(node.target).view


def _restore(graph: Graph, before: list[tuple[Node, Any, Any, dict[str, Any]]]) -> None:
    known = {node for node, *_ in before}
    for node, args, kwargs, meta in before:
        node.args, node.kwargs = args, kwargs
        node.meta.clear()
        node.meta.update(meta)
    for node in reversed(list(graph.nodes)):
        if node not in known:
            graph.erase_node(node)
    for (node, *_), (following, *_) in itertools.pairwise(before):
        if node.next is not following:
            node.append(following)


class _Rewriter:
    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.model = decision.model
        self.emitter = Emitter(self.model.graph, self.model.fake_mode)
        self.by_node: dict[Node, list[Candidate]] = {}
        for candidate in self.model.candidates:
            self.by_node.setdefault(candidate.node, []).append(candidate)
        self.copied: dict[Node, dict[Node, None]] = {}
        for index, _, operand in decision.copied:
            self.copied.setdefault(self.model.candidates[index].node, {})[operand] = None
        self.leaves: list[Node] = [n for o in self.model.graph.find_nodes(op="output") for n in _leaves(o)]
        self.replaced: dict[Node, Node] = {}
        self.stale: set[Node] = set()
        self.rebased: dict[Storage, int] = {}
        self.dead: list[Node] = []
        self.current: Node | None = None

    def run(self) -> list[Node]:
        """Rewrite all nodes; returns those that have no users any more, in graph order."""
        for node in list(self.model.graph.nodes):
            self.current = node
            if node.op == "output":
                self._returned(node)
            elif node in self.by_node:
                self._candidates(node, self.by_node[node])
            elif node in self.decision.erased:
                self._replace(node, node.args[0])
            elif node in self.stale:
                self._refresh(node)
        self.current = None
        return sorted(self.dead, key=self.model.order.__getitem__)

    def _replace(self, node: Node, new: Any) -> None:
        """Let the users of ``node`` use ``new``; the node itself is erased at the end."""
        self.stale.update(node.users)
        node.replace_all_uses_with(new)
        self.replaced[node] = new
        self.dead.append(node)

    def _refresh(self, node: Node) -> None:
        """Recompute a view's fake value when its operand is another tensor now."""
        if node.op != "call_function":
            return
        if node.target is operator.getitem:
            source: Any = node.args[0]
            if isinstance(source.meta.get("val"), list | tuple):
                node.meta["val"] = source.meta["val"][node.args[1]]
            self.stale.update(node.users)
            return
        if not is_operator(node.target) or not schema_of(node.target).view:
            return
        moved = self._moved(self.model.place(node)) if scatter.is_absolute(node) else 0
        if moved:
            node.args = (*node.args[:3], self.emitter.plus(node, node.args[3], moved))
        if not node.meta.get("unbacked_bindings"):
            node.meta["val"] = self.emitter.value(node)
            self.stale.update(node.users)

    def _moved(self, place: Place | None) -> int:
        """Return by how many items a storage's bytes moved when it joined its buffer."""
        if place is None:
            return 0
        root = self.decision.root(place.storage)
        shift = place.storage.shift - root.shift + self.rebased.get(root, 0)
        return int(shift) // place.value.element_size() if shift != 0 else 0

    def _candidates(self, node: Node, candidates: list[Candidate]) -> None:
        for operand in self.copied.get(node, ()):
            self._copy_operand(node, operand)
        kind = candidates[0].kind
        if kind is Kind.AUTO_V1:
            self._auto_v1(node, candidates)
        elif kind is Kind.AUTO_V2:
            self._auto_v2(node, candidates)
        elif kind is Kind.TRITON:
            self._triton(node, candidates)
        elif self.decision.accepted(candidates[0]):
            self._functional(node, candidates[0])
        elif kind is Kind.SCATTER and self.model.absolute:
            # A functional scatter takes its operand's offset into the storage, and that may be another
            # one now; views that name bytes by their offset need to know where they are.
            copy = self._cloned(node, candidates[0], node.args[0], node.meta["val"])
            self._write_view(node, candidates[0], copy)
            self._replace(node, copy)

    def _copy_operand(self, node: Node, operand: Node) -> None:
        """Let a call read a copy of one operand, at every place where it only reads it."""
        current = self._now(operand)
        copy = self.emitter.clone(node, current)

        def swap(n: Node) -> Node:
            return copy if n is current else n

        if node.target in (_torch.hop("auto_functionalized"), _torch.hop("auto_functionalized_v2")):
            read = {n: map_arg(v, swap) for n, v in wrapper.read_args(node)}
            node.kwargs = {**node.kwargs, **read}
        elif node.target is _torch.hop("triton_kernel_wrapper_functional"):
            inner: Any = node.kwargs["kwargs"]
            written: Any = node.kwargs["tensors_to_clone"]
            read = {n: v if n in written else map_arg(v, swap) for n, v in inner.items()}
            node.kwargs = {**node.kwargs, "kwargs": read}
        else:  # self is the first argument and stays
            node.args = (node.args[0], *map_arg(node.args[1:], swap))

    def _now(self, node: Node) -> Node:
        while node in self.replaced:
            node = self.replaced[node]
        return node

    def _operand(self, node: Node, candidate: Candidate, current: Node) -> Node:
        """Return what the mutable call writes into: the operand itself or a clone of it."""
        if self.decision.accepted(candidate):
            return current
        return self._cloned(node, candidate, current, candidate.operand.value)

    def _cloned(self, node: Node, candidate: Candidate, current: Any, was: torch.Tensor) -> Node:
        """Insert the clone that a refused candidate writes into, and note where it starts.

        The functional form keeps its operand's offset into the storage (that of ``was``), this one
        starts at 0.
        """
        copy = self.emitter.clone(node, current)
        if self.model.absolute:
            moved = copy.meta["val"].storage_offset() - was.storage_offset()
            self.rebased[candidate.result] = int(moved) * was.element_size()
        return copy

    # -- wrappers ------------------------------------------------------------------------------

    def _auto_v1(self, node: Node, candidates: list[Candidate]) -> None:
        op: Any = node.args[0]
        by_name: dict[str, Any] = dict(node.kwargs)
        for candidate in candidates:
            slot: Any = candidate.slot
            name, item = slot if isinstance(slot, tuple) else (slot, None)
            if item is None:
                by_name[name] = self._operand(node, candidate, by_name[name])
            else:
                items = list(by_name[name])
                items[item] = self._operand(node, candidate, items[item])
                by_name[name] = items
        call = self.emitter.mutable_op(node, op, by_name, eager_values(node))
        first = wrapper.first_result(node)
        written = {first + i: by_name[n] for i, n in enumerate(schema_of(op).mutable)}
        self._results(node, call, written, first)

    def _auto_v2(self, node: Node, candidates: list[Candidate]) -> None:
        op: Any = node.args[0]
        bases: list[Any] = list(node.kwargs["_all_bases"])  # type: ignore[arg-type]
        moved = [0] * len(bases)
        for candidate in candidates:
            i = int(candidate.slot)  # type: ignore[arg-type]
            old = candidate.operand.value
            if self.decision.accepted(candidate):
                moved[i] = self._moved(candidate.operand)
            else:
                bases[i] = self._cloned(node, candidate, bases[i], old)
                moved[i] = bases[i].meta["val"].storage_offset() - old.storage_offset()
        eager = eager_values(node)
        by_name: dict[str, Any] = {}
        views = wrapper.base_views(node)
        names = schema_of(op).names
        for name in names:
            mine = [v for v in views if v.name == name]
            made = [None if v.base is None else self._based(node, bases, v, moved) for v in mine]
            if f"_{name}_length" in node.kwargs:
                by_name[name] = None if node.kwargs[f"_{name}_length"] is None else made
            elif mine:
                by_name[name] = made[0]
            elif name in node.kwargs:
                by_name[name] = node.kwargs[name]
        if eager is not None:
            eager = {**eager, **self._eager_views(node, eager, views)}
        call = self.emitter.mutable_op(node, op, by_name, eager)
        first = wrapper.first_result(node)
        self._results(node, call, {first + i: base for i, base in enumerate(bases)}, first)

    def _based(self, node: Node, bases: list[Any], view: wrapper.BaseView, moved: list[int]) -> Node:
        assert view.base is not None
        return self.emitter.base_view(node, bases[view.base], view, moved[view.base])

    def _eager_views(
        self, node: Node, eager: dict[str, Any], views: list[wrapper.BaseView]
    ) -> dict[str, Any]:
        """Return the eager values of the mutated arguments of a v2 wrapper."""
        values: dict[str, Any] = {}
        for view in views:
            value = None if view.base is None else eager["_all_bases"][view.base]
            if value is not None and view.form != "base":
                data = map_arg(view.data, lambda n: n.meta["val"])
                target = aten.slice.Tensor if view.form == "slice" else aten.as_strided.default
                value = _torch.run_fake(self.model.fake_mode, target, (value, *data), {})
            if view.item is None:
                values[view.name] = value
            else:
                values.setdefault(view.name, []).append(value)
        for name in schema_of(node.args[0]).mutable:
            if node.kwargs.get(f"_{name}_length", 0) is None:
                values[name] = None
        return values

    def _triton(self, node: Node, candidates: list[Candidate]) -> None:
        inner: dict[str, Any] = dict(node.kwargs["kwargs"])  # type: ignore[arg-type]
        for candidate in candidates:
            name = str(candidate.slot)
            inner[name] = self._operand(node, candidate, inner[name])
        kwargs = {k: v for k, v in node.kwargs.items() if k != "tensors_to_clone"}
        mutation = _torch.hop("triton_kernel_wrapper_mutation")
        call = self.emitter.call(node, mutation, (), {**kwargs, "kwargs": inner})
        call.meta["val"] = None
        eager = eager_values(node)
        if eager is not None:
            eager.pop("tensors_to_clone", None)
            call.meta["eager_input_vals"] = ((), eager)
        self._results(node, call, {name: inner[name] for name in inner}, 0)

    def _results(self, node: Node, call: Node, written: dict[Any, Any], first: int) -> None:
        """Give the users of a wrapper's results what the mutable call leaves behind."""
        op: Any = node.args[0] if node.args else None
        val: Any = node.meta.get("val")
        if op is not None:
            several = len(schema_of(op).returns) > 1
            call.meta["val"] = tuple(val[:first]) if several else None if returns_only_none(op) else val[0]
        for user in list(node.users):
            key = user.args[1]
            if key in written:
                self._project(user, written[key])
            elif op is not None and len(schema_of(op).returns) > 1:
                item = self.emitter.call(user, operator.getitem, (call, key))
                item.meta["val"] = val[key]
                self._replace(user, item)
            else:
                self._replace(user, call)
        self.dead.append(node)

    def _project(self, user: Node, value: Any) -> None:
        """Replace a getitem on the wrapper by the tensor, or by the list's elements, that was written."""
        if isinstance(value, Node):
            self._replace(user, value)
            return
        for item in list(user.users) if value is not None else ():
            self._replace(item, value[item.args[1]])
        self.dead.append(user)

    # -- functional operators ------------------------------------------------------------------

    def _functional(self, node: Node, candidate: Candidate) -> None:
        operand: Any = node.args[1 if candidate.kind is Kind.COPY else 0]
        if candidate.kind is Kind.INDEX_PUT:
            # Inductor's unchecked form applies an accumulation twice when it is run node by node.
            accumulates = len(node.args) > 3 and node.args[3] is not False
            unsafe = schema_of(node.target).name == "aten::_unsafe_index_put" and not accumulates
            target = _torch.unsafe_index_put_() if unsafe else aten.index_put_.default
            call = self.emitter.call(node, target, node.args, node.kwargs)
            call.meta["val"] = operand.meta["val"]
        elif candidate.kind is Kind.SCATTER and candidate.index not in self.decision.moved:
            self._write_view(node, candidate, operand)
        self._replace(node, operand)

    def _write_view(self, node: Node, candidate: Candidate, operand: Node) -> None:
        source, args = node.args[1], list(node.args[2:])
        if scatter.is_absolute(node):
            accepted = self.decision.accepted(candidate)
            place = candidate.operand if accepted else self.model.place(node)
            moved = self._moved(place)
            if moved:
                args[2] = self.emitter.plus(node, args[2], moved)
        kwargs = {k: v for k, v in node.kwargs.items() if k != "src"}
        view = self.emitter.view(node, scatter.view_of(node), (operand, *args), kwargs)
        copy = self.emitter.call(node, aten.copy_.default, (view, source))
        copy.meta["val"] = view.meta["val"]

    def _returned(self, node: Node) -> None:
        """Clone outputs that would share storage with an input or another output."""
        copies = {leaf: self.emitter.clone(node, self._now(leaf)) for leaf in self.decision.returned}
        original = iter(self.leaves)

        def swap(now: Node) -> Node:
            return copies.get(next(original), now)

        if copies:
            node.args = map_arg(node.args, swap)


def _leaves(node: Node) -> list[Node]:
    found: list[Node] = []

    def note(leaf: Node) -> Node:
        found.append(leaf)
        return leaf

    map_arg(node.args, note)
    return found
