"""The values of a random graph in the making, and how operands are chosen among them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from .. import _torch
from ..verify.laid_out import overlaps_itself
from .builder import GraphBuilder
from .draws import Draws

aten: Any = torch.ops.aten


class Pool:
    """What can be used as an operand. A storage is stale when there is a newer version of it."""

    def __init__(self, draws: Draws, builder: GraphBuilder | None = None) -> None:
        self.draws = draws
        self.builder: GraphBuilder = builder or GraphBuilder()
        self.values: list[Node] = []
        self.stale: set[int | None] = set()
        self.candidates: int = 0

    def storage(self, node: Node) -> int | None:
        """Return an identity of the storage that a value lives in."""
        return _torch.storage_key(node.meta["val"])

    def fresh(self) -> list[Node]:
        """Return the values that are of the newest version, oldest first."""
        return [n for n in self.values if self.storage(n) not in self.stale] or self.values

    def latest(self) -> Node:
        """Return the value that was made last."""
        return self.fresh()[-1]

    def any(self, fresh: int = 85, rank: int = 0) -> Node:
        """Choose a value, newer ones and the present versions more often."""
        options = self.fresh() if self.draws.chance(fresh) else self.values
        options = [n for n in options if n.meta["val"].dim() >= rank] or [
            n for n in self.values if n.meta["val"].dim() >= rank
        ]
        if self.draws.chance(50):
            options = options[-3:]
        return options[-1 - self.draws.below(len(options))]

    def writable(self, rank: int = 0) -> Node | None:
        """Choose a value without elements that share memory."""
        if all(n.meta["val"].dim() < rank for n in self.values):
            return None
        for _ in range(3):
            node = self.any(rank=rank)
            if not overlaps_itself(node.meta["val"]) and node.meta["val"].numel():
                return node
        return None

    def alike(self, like: Node, *, last: bool) -> Node | None:
        """Return a value of the same shape and dtype."""
        shape, dtype = like.meta["val"].shape, like.meta["val"].dtype
        found = [n for n in self.values if n.meta["val"].shape == shape and n.meta["val"].dtype == dtype]
        if not found:
            return None
        return found[-1] if last else self.draws.of(found)

    def shaped(self, shape: Any, dtype: torch.dtype) -> Node:
        """Return a value of a shape: one that is there, a part of another one, or a constant."""
        found = [n for n in self.values if n.meta["val"].shape == shape and n.meta["val"].dtype == dtype]
        if found and self.draws.chance(75):
            return found[-1 - self.draws.below(len(found))]
        count = math.prod(shape)
        for node in reversed(self.values):
            value = node.meta["val"]
            if value.dtype == dtype and value.is_contiguous() and value.numel() >= count > 0:
                start = self.draws.between(0, value.numel() - count)
                flat = self.builder.call(aten.view.default, node, [value.numel()])
                part = self.builder.call(aten.slice.Tensor, flat, 0, start, start + count)
                return self.keep(self.builder.call(aten.view.default, part, list(shape)))
        return self.keep(self.constant(shape, dtype))

    def constant(self, shape: Any, dtype: torch.dtype) -> Node:
        """Return distinct numbers: writing equal ones over each other would hide a wrong rewrite."""
        call, start = self.builder.call, 1000 * len(self.values)
        options = {"dtype": dtype, "device": torch.device("cpu"), "pin_memory": False}
        if not len(shape):
            return call(aten.full.default, [], start, **options)
        flat = call(aten.arange.start_step, start, start + math.prod(shape), 1, **options)
        return call(aten.view.default, flat, list(shape))

    def keep(self, node: Node) -> Node:
        """Make a value available, and return it."""
        self.values.append(node)
        return node

    def replaced(self, old: Node, new: Node) -> Node:
        """Note that ``new`` is what became of ``old``."""
        self.stale.add(self.storage(old))
        self.candidates += 1
        return self.keep(new)
