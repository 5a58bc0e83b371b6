"""One rewrite of a decision's graph: what the kinds of candidates use to write theirs.

It knows what replaced each node, where its bytes went, and which fake values are stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
import torch
from torch.fx import Node

from ...graph.alias import begin_of
from ...graph.emit import Emitter
from ...memory import geometry
from ...memory.region import Size, as_size
from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.model import Model
from ..facts.place import Place, Storage


class Rewriter:
    """The state of one rewrite, and its primitives.

    Args:
        decision: what is done with every candidate.
    """

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.model: Model = decision.model
        self.emitter: Emitter = Emitter(self.model.graph, lowered=self.model.target.makes_as_told)
        self.replaced: dict[Node, Node] = {}
        self.stale: set[Node] = set()
        self.rebased: dict[Storage, Size] = {}
        self.dead: list[Node] = []

    def replace(self, node: Node, new: Any) -> None:
        """Let the users of ``node`` use ``new``; the node itself is erased at the end."""
        self.stale.update(node.users)
        node.replace_all_uses_with(new)
        self.replaced[node] = new
        self.dead.append(node)

    def hand_out(self, node: Node, made: Mapping[Any, Any]) -> None:
        """Let what takes results out of ``node`` stand for what was made of them, by their positions."""
        for user in list(node.users):
            self.replace(user, made[user.args[1]])
        self.dead.append(node)

    def call(self, node: Node, target: Any, args: Any, kwargs: Any, val: Any) -> Node:
        """Insert a call before ``node``, of which the value is known."""
        call = self.emitter.call(node, target, args, kwargs)
        call.meta["val"] = val
        return call

    def shift_of(self, place: Place | None) -> Size:
        """Return by how many items a storage's bytes moved when it joined its buffer."""
        if place is None:
            return 0
        root = self.decision.root(place.storage)
        shift, item = place.storage.shift - root.shift + self.rebased.get(root, 0), place.value.element_size()
        return shift // item if isinstance(shift, int) else as_size(sympy.expand(shift / item))

    def now(self, node: Node) -> Node:
        """Return what stands for a node by now."""
        while node in self.replaced:
            node = self.replaced[node]
        return node

    def is_in_place(self, candidate: Candidate) -> bool:
        """Return whether a candidate writes into what it is given: its operand, or a clone made early."""
        return self.decision.accepted(candidate) or candidate.index in self.decision.early

    def operand(self, node: Node, candidate: Candidate, current: Node, result: Any = None) -> Node:
        """Return what the mutable call writes into: the operand itself or a clone of it.

        Args:
            node: the functional call.
            candidate: the operand.
            current: the operand's node by now.
            result: the fake value of what the functional call makes of it.
        """
        if self.is_in_place(candidate):
            return current
        return self.cloned(node, candidate, current, candidate.operand.value, result)

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
        if self.model.layouts.has_names:
            moved = begin_of(copy) - as_size(was.storage_offset())
            self.rebased[candidate.result] = moved * was.element_size()
        return copy

    def _padding(self, candidate: Candidate, was: torch.Tensor) -> int:
        item = self.model.layouts.of(candidate.node).viewed
        if not item or not self.model.target.begins_anywhere or not geometry.may_be_padded(was):
            return 0
        return geometry.padding(was, item)
