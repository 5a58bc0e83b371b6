"""Carries a decision out: functional nodes become mutable calls, on the operand or on an explicit clone.

The rewrite is whole or not at all: operands are redirected and nodes inserted first, with every change in
a journal; nodes are erased last, when nothing can fail any more.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from torch.fx import Node
from torch.fx.node import map_arg

from .. import _torch
from ..errors import RewriteError
from ..graph.journal import Journal, erase
from ..graph.wellformed import check
from ..memory.region import is_multiple
from ..ops import views, wrapper
from ..ops.nested import nodes
from ..ops.schema import argument, is_operator, schema_of
from ..ops.wording import at
from ..ops.wrapper_names import wraps_operator
from .facts.candidate import Snapshot
from .facts.decision import Decision
from .kinds import kind, out_wrapper
from .layout import hidden_alias
from .write.rewriter import Rewriter


def apply(decision: Decision) -> None:
    """Rewrite the decision's graph.

    Raises:
        RewriteError: something went wrong; the graph is as it was before.
    """
    graph = decision.model.graph
    journal = Journal(graph)
    walk = _Walk(decision)
    try:
        for anchor, moved in decision.model.reordered.items():
            for reader in moved:
                anchor.prepend(reader)
        dead = walk.run()
        check(graph)  # while it can be put back; torch's own takes twice as long
    except Exception as error:
        journal.restore()
        place = "the graph" if walk.current is None else at(walk.current)
        raise RewriteError(
            f"rewriting failed at {place}: {type(error).__name__}: {error}; the graph is unchanged"
        ) from error
    erase(graph, dead)


class _Walk(Rewriter):
    """One rewrite of a decision's graph, node by node."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.copied: dict[Node, dict[Node, None]] = {}
        for index, _, operand in decision.copied:
            self.copied.setdefault(self.model.candidates[index].node, {})[operand] = None
        self.snapshots: dict[Node, list[Snapshot]] = {}
        self.kept: dict[tuple[Node, Node], Node] = {}
        for snapshot in decision.snapshots:
            self.snapshots.setdefault(snapshot.before, []).append(snapshot)
        self.uses: dict[Node, list[Node]] = {
            r: nodes((r.args, r.kwargs)) for s in decision.snapshots for r in s.readers
        }
        self.leaves: list[Node] = [n for o in self.model.graph.find_nodes(op="output") for n in nodes(o.args)]
        self.current: Node | None = None

    def run(self) -> list[Node]:
        """Rewrite all nodes; returns those that have no users any more, in graph order."""
        by_node, erased, stale = self.model.candidates_of, self.decision.erased, self.stale
        aside, v2 = self.model.premises.aside, _torch.hop("auto_functionalized_v2")
        for node in list(self.model.graph.nodes):
            self.current = node
            for snapshot in self.snapshots.get(node, ()):
                self._keep(node, snapshot)
            if node.op == "output":
                self._returned(node)
            elif node in by_node:
                for operand in self.copied.get(node, ()):
                    self._copy_operand(node, operand)
                kind.rewrite(self, node, by_node[node])
                if node in stale:
                    self._revalue(node)
            elif node.target is v2 and out_wrapper.sees_to(node):  # also where it has nothing to write into
                out_wrapper.rewrite(self, node, [])
            elif node in erased:
                self.replace(node, node.args[0])
            elif node in aside:
                self._check_unmoved(node)
            elif node in stale:
                self._refresh(node)
        self.current = None
        return sorted(self.dead, key=self.model.order.__getitem__)

    def _check_unmoved(self, node: Node) -> None:
        """See that a call which stays functional finds its operands at offsets that it can keep."""
        is_absolute, is_wrapper = views.is_absolute(node), not is_operator(node.target)
        for _, place in self.model.operands((node.args, node.kwargs)):
            moved = self.shift_of(place) * place.value.element_size()
            item = self.model.layouts.of(node).viewed if is_wrapper else 0
            if moved and (is_absolute or not is_multiple(moved, item)):
                raise ValueError(f"{node.name} stays, and its operand begins elsewhere now")

    def _revalue(self, node: Node) -> None:
        """Recompute the fake value of an operator that stays functional on an operand with other strides."""
        if node in self.model.relaid and node.users and is_operator(node.target):
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
        if hidden_alias.is_operand(self.model, node):  # views of it must lie where it lies now
            node.meta["val"] = node.all_input_nodes[0].meta["val"]
            self.stale.update(node.users)
            return
        if not is_operator(node.target) or not schema_of(node.target).view:
            self._revalue(node)
            return
        moved = self.shift_of(self.model.place(node)) if views.is_absolute(node) else 0
        if moved:
            operand, size, stride, offset = (argument(node, n) for n in schema_of(node.target).names)
            offset = self.emitter.shifted_offset(node, size, offset, moved)
            node.args, node.kwargs = (operand, size, stride, offset), {}
        if not node.meta.get("unbacked_bindings"):
            node.meta["val"] = self.emitter.value(node)
            self.stale.update(node.users)

    def _keep(self, node: Node, snapshot: Snapshot) -> None:
        """Copy an old value before ``node`` for its later readers.

        Another operand of a reader may have come to be the very same tensor and mean what is there later.
        """
        current = self.now(snapshot.operand)
        copy = self.emitter.clone(node, current)
        self.kept[node, snapshot.operand] = copy
        for reader in snapshot.readers:
            written = iter(self.uses[reader])

            def swap(now: Node, written: Iterator[Node] = written) -> Node:
                return copy if next(written) is snapshot.operand else now

            reader.args, reader.kwargs = map_arg((reader.args, reader.kwargs), swap)

    def _copy_operand(self, node: Node, operand: Node) -> None:
        """Let a call read a copy of one operand, at every place where it only reads it.

        What an operator of ATen stores into another operand is laid out as that one is, whatever strides the
        source has. Others, whose kernels may rely on them, are called in wrappers.
        """
        current, is_compact = self.now(operand), is_operator(node.target)
        copy = self.kept.get((node, operand)) or self.emitter.clone(node, current, is_compact=is_compact)

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
        else:  # self is the first argument and stays
            node.args = (node.args[0], *map_arg(node.args[1:], swap))
            node.kwargs = map_arg(node.kwargs, swap)

    def _returned(self, node: Node) -> None:
        """Clone outputs that would share storage with an input or another output."""
        copies = {leaf: self.emitter.clone(node, self.now(leaf)) for leaf in self.decision.returned}
        original = iter(self.leaves)

        def swap(now: Node) -> Node:
            return copies.get(next(original), now)

        if copies:
            node.args = map_arg(node.args, swap)
