"""Carries a decision out: functional nodes become mutable calls, on the operand or on an explicit clone.

The rewrite is whole or not at all: operands are redirected and nodes inserted first, with every change in
a journal; nodes are erased last, when nothing can fail any more.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from . import (
    _torch,
    declared,
    hidden_alias,
    in_place,
    outs,
    relayout,
    scatter,
    subgraph_call,
    wellformed,
    wrapper,
    wrapper_rewrite,
)
from .candidate import Candidate, Kind
from .collectives import is_collective
from .decision import Decision
from .emit import Emitter
from .errors import RewriteError
from .functionalized import wraps_operator
from .model import Model
from .place import Place, Storage
from .schema import argument, is_operator, schema_of, target_name
from .snapshot import Snapshot, leaves
from .source import where

aten: Any = torch.ops.aten


def apply(decision: Decision) -> None:
    """Rewrite the decision's graph.

    Raises:
        RewriteError: something went wrong; the graph is as it was before.
    """
    graph = decision.model.graph
    before = [(n, n.args, n.kwargs, dict(n.meta)) for n in graph.nodes]
    rewriter = Rewriter(decision)
    try:
        for anchor, moved in decision.model.moved.items():
            for reader in moved:
                anchor.prepend(reader)
        dead = rewriter.run()
        _lint(graph)
    except Exception as error:
        _restore(graph, before)
        node = rewriter.current
        at = f"{node.name} ({target_name(node.target)}) at {where(node)}" if node is not None else "the graph"
        raise RewriteError(
            f"rewriting failed at {at}: {type(error).__name__}: {error}; the graph is unchanged"
        ) from error
    _erase(graph, dead)


def _lint(graph: Graph) -> None:
    """See that what was made is a graph, while it can be put back; torch's own check takes twice as long."""
    wellformed.check(graph)


def _erase(graph: Graph, dead: list[Node]) -> None:
    """Erase replaced nodes, and the views that only they used."""
    pending, known = list(dead), set(dead)
    while pending:
        node = pending.pop()
        operands = node.all_input_nodes
        graph.erase_node(node)
        for operand in operands:
            if not operand.users and operand not in known and _is_unused_view(operand):
                known.add(operand)
                pending.append(operand)


def _is_unused_view(node: Node) -> bool:
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return True
    # The wait for a collective ends the write into its buffer: needed even when nobody uses its result.
    return is_operator(node.target) and schema_of(node.target).view and not is_collective(node.target)


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


class Rewriter:
    """One rewrite of a decision's graph, node by node."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.model: Model = decision.model
        self.emitter: Emitter = Emitter(self.model.graph, self.model.fake_mode, lowered=self.model.lowered)
        self.by_node: dict[Node, list[Candidate]] = self.model.candidates_of
        self.copied: dict[Node, dict[Node, None]] = {}
        for index, _, operand in decision.copied:
            self.copied.setdefault(self.model.candidates[index].node, {})[operand] = None
        self.snapshots: dict[Node, list[Snapshot]] = {}
        self.kept: dict[tuple[Node, Node], Node] = {}
        for snapshot in decision.snapshots:
            self.snapshots.setdefault(snapshot.before, []).append(snapshot)
        self.uses: dict[Node, list[Node]] = {r: leaves(r) for s in decision.snapshots for r in s.readers}
        self.leaves: list[Node] = [n for o in self.model.graph.find_nodes(op="output") for n in leaves(o)]
        self.replaced: dict[Node, Node] = {}
        self.stale: set[Node] = set()
        self.rebased: dict[Storage, int] = {}
        self.dead: list[Node] = []
        self.current: Node | None = None

    def run(self) -> list[Node]:
        """Rewrite all nodes; returns those that have no users any more, in graph order."""
        by_node, erased, stale = self.by_node, self.decision.erased, self.stale
        aside, v2 = self.model.setting.aside, _torch.hop("auto_functionalized_v2")
        for node in list(self.model.graph.nodes):
            self.current = node
            for snapshot in self.snapshots.get(node, ()):
                self._keep(node, snapshot)
            if node.op == "output":
                self._returned(node)
            elif node.target is v2 and outs.makes_outs(node):
                outs.rewrite(self, node, by_node.get(node, []))
            elif node in by_node:
                self._candidates(node, by_node[node])
                self._revalue(node)
            elif node in erased:
                self.replace(node, node.args[0])
            elif node in aside:
                self._check_unmoved(node)
            elif node in stale:
                self._refresh(node)
        self.current = None
        return sorted(self.dead, key=self.model.order.__getitem__)

    def replace(self, node: Node, new: Any) -> None:
        """Let the users of ``node`` use ``new``; the node itself is erased at the end."""
        self.stale.update(node.users)
        node.replace_all_uses_with(new)
        self.replaced[node] = new
        self.dead.append(node)

    def _check_unmoved(self, node: Node) -> None:
        """See that a call which stays functional finds its operands at offsets that it can keep."""
        is_absolute, is_wrapper = scatter.is_absolute(node), not is_operator(node.target)
        for _, place in self.model.operands((node.args, node.kwargs)):
            moved = self.moved(place) * place.value.element_size()
            item = self.model.addressing.views(node) if is_wrapper else 0
            if moved and (is_absolute or not relayout.is_multiple(moved, item)):
                raise ValueError(f"{node.name} stays, and its operand begins elsewhere now")

    def _revalue(self, node: Node) -> None:
        """Recompute the fake value of an operator that stays functional on an operand with other strides."""
        if node in self.stale and node in self.model.relaid and node.users and is_operator(node.target):
            node.meta["val"] = self.emitter.value(node)
            self.stale.update(node.users)

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
        if declared.is_alias(node):
            node.meta["val"] = declared.revalued(self.model, node, self.moved)
            self.stale.update(node.users)
            return
        if hidden_alias.is_operand(self.model, node):  # views of it must lie where it lies now
            node.meta["val"] = node.all_input_nodes[0].meta["val"]
            self.stale.update(node.users)
            return
        if not is_operator(node.target) or not schema_of(node.target).view:
            self._revalue(node)
            return
        moved = self.moved(self.model.place(node)) if scatter.is_absolute(node) else 0
        if moved:
            operand, size, stride, offset = (argument(node, n) for n in schema_of(node.target).names)
            offset = self.emitter.moved(node, size, offset, moved)
            node.args, node.kwargs = (operand, size, stride, offset), {}
        if not node.meta.get("unbacked_bindings"):
            node.meta["val"] = self.emitter.value(node)
            self.stale.update(node.users)

    def moved(self, place: Place | None) -> int:
        """Return by how many items a storage's bytes moved when it joined its buffer."""
        if place is None:
            return 0
        root = self.decision.root(place.storage)
        shift = place.storage.shift - root.shift + self.rebased.get(root, 0)
        return int(shift) // place.value.element_size() if shift != 0 else 0

    def _keep(self, node: Node, snapshot: Snapshot) -> None:
        """Copy an old value before ``node`` for its later readers.

        Another operand of a reader may have come to be the very same tensor and mean what is there later.
        """
        current = self._now(snapshot.operand)
        copy = self.emitter.clone(node, current)
        self.kept[node, snapshot.operand] = copy
        for reader in snapshot.readers:
            written = iter(self.uses[reader])

            def swap(now: Node, written: Iterator[Node] = written) -> Node:
                return copy if next(written) is snapshot.operand else now

            reader.args, reader.kwargs = map_arg((reader.args, reader.kwargs), swap)

    def _candidates(self, node: Node, candidates: list[Candidate]) -> None:
        for operand in self.copied.get(node, ()):
            self._copy_operand(node, operand)
        kind = candidates[0].kind
        if kind is Kind.AUTO_V1:
            wrapper_rewrite.auto_v1(self, node, candidates)
        elif kind is Kind.AUTO_V2:
            wrapper_rewrite.auto_v2(self, node, candidates)
        elif kind is Kind.TRITON:
            wrapper_rewrite.triton(self, node, candidates)
        elif kind is Kind.IN_PLACE:
            in_place.rewrite(self, node, candidates)
        elif kind is Kind.CALL:
            subgraph_call.carry_out(self.model.calls, candidates, self.operand, self.replace)
        elif self._is_in_place(candidates[0]):
            self._functional(node, candidates[0])
        elif kind is Kind.SCATTER and scatter.moves(self.model, candidates[0].operand):
            # Views that name bytes by their offset need to know where they are.
            copy = self.cloned(node, candidates[0], node.args[0], node.meta["val"])
            self._write_view(node, candidates[0], copy)
            self.replace(node, copy)

    def _is_in_place(self, candidate: Candidate) -> bool:
        """Return whether a candidate writes into what it is given: its operand, or a clone made early."""
        return self.decision.accepted(candidate) or candidate.index in self.decision.early

    def _copy_operand(self, node: Node, operand: Node) -> None:
        """Let a call read a copy of one operand, at every place where it only reads it."""
        current = self._now(operand)
        copy = self.kept.get((node, operand)) or self.emitter.clone(node, current)

        def swap(n: Node) -> Node:
            return copy if n is current else n

        if wraps_operator(node.target):
            read = {n: map_arg(v, swap) for n, v in wrapper.read_args(node)}
            node.kwargs = {**node.kwargs, **read}
        elif node.target is _torch.hop("triton_kernel_wrapper_functional"):
            inner: Any = node.kwargs["kwargs"]
            written: Any = node.kwargs["tensors_to_clone"]
            read = {n: v if n in written else map_arg(v, swap) for n, v in inner.items()}
            node.kwargs = {**node.kwargs, "kwargs": read}
        elif node in self.model.calls.ties:
            node.args = subgraph_call.swapped(node, self.model.calls, current, copy)
        else:  # self is the first argument and stays
            node.args = (node.args[0], *map_arg(node.args[1:], swap))
            node.kwargs = map_arg(node.kwargs, swap)

    def _now(self, node: Node) -> Node:
        while node in self.replaced:
            node = self.replaced[node]
        return node

    def operand(self, node: Node, candidate: Candidate, current: Node, result: Any = None) -> Node:
        """Return what the mutable call writes into: the operand itself or a clone of it.

        Args:
            node: the functional call.
            candidate: the operand.
            current: the operand's node by now.
            result: the fake value of what the functional call makes of it.
        """
        if self._is_in_place(candidate):
            return current
        is_call = candidate.kind is Kind.CALL  # its result is recorded where the subgraph leaves it
        was = node.meta["val"][candidate.slot] if is_call else candidate.operand.value
        return self.cloned(node, candidate, current, was, result)

    def cloned(
        self, node: Node, candidate: Candidate, current: Any, was: torch.Tensor, result: Any = None
    ) -> Node:
        """Insert the clone that a refused candidate writes into, and note where it starts.

        The functional form's result has an offset into its storage (that of ``was``: mostly its
        operand's), this one starts at 0.
        """
        start = self._padding(candidate, was)
        if start:
            copy = self.emitter.padded(node, current, start, not candidate.write_only)
        elif candidate.write_only:
            copy = self.emitter.empty(node, current)
        else:
            copy = self.emitter.clone(node, current, result)
        if self.model.addressing.has_names:
            moved = copy.meta["val"].storage_offset() - was.storage_offset()
            self.rebased[candidate.result] = int(moved) * was.element_size()
        return copy

    def _padding(self, candidate: Candidate, was: torch.Tensor) -> int:
        item = self.model.addressing.views(candidate.node)
        if not item or self.model.lowered or not relayout.may_be_padded(was):
            return 0
        return relayout.padding(was, item)

    # -- functional operators ------------------------------------------------------------------

    def _functional(self, node: Node, candidate: Candidate) -> None:
        operand: Any = node.args[1 if candidate.kind is Kind.COPY else 0]
        if candidate.kind is Kind.INDEX_PUT:
            # Inductor's unchecked form applies an accumulation twice when it is run node by node.
            accumulates = argument(node, "accumulate") not in (None, False)
            unsafe = schema_of(node.target).name == "aten::_unsafe_index_put" and not accumulates
            target = _torch.unsafe_index_put_() if unsafe else aten.index_put_.default
            call = self.emitter.call(node, target, node.args, node.kwargs)
            call.meta["val"] = operand.meta["val"]
        elif candidate.kind is Kind.SCATTER and candidate.index not in self.decision.moved:
            self._write_view(node, candidate, operand)
        self.replace(node, operand)

    def _write_view(self, node: Node, candidate: Candidate, operand: Node) -> None:
        source, args = argument(node, "src"), list(node.args[2:])
        kwargs = {k: v for k, v in node.kwargs.items() if k != "src"}
        if scatter.is_absolute(node):
            accepted = self.decision.accepted(candidate)
            place = candidate.operand if accepted else self.model.place(node)
            moved = self.moved(place)
            if moved:
                args = [argument(node, name) for name in ("size", "stride", "storage_offset")]
                args, kwargs = [*args[:2], self.emitter.moved(node, args[0], args[2], moved)], {}
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
