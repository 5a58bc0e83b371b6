"""What may move where: the constraints on the order of a functional graph, and an order under change.

Nodes only move to an earlier place: in front of a write that would otherwise have to copy because they
read the old bytes after it. A move is legal because the nodes that move are pure, everything that they
need is there before them, and they cross nothing that could make them compute something else:

* they are ATen or prims operators, views or arithmetic on sizes; no candidates but explicit clones, no
  random numbers, no data-dependent sizes, no collectives, no operators that are not torch's own;
* they cross no effect, random number, collective, wait or operator that is not understood;
* they cross no real write (``copy_``) into a storage that they touch.

So the graph in its new order is a functional graph that computes the same: it is decided like any other.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable

from torch.fx import Node

from ...graph.alias import viewed
from ...graph.movable import is_barrier, is_movable
from ..facts import price
from ..facts.model import Model
from ..facts.premises import Order

_MOST_MOVED = 48  # nodes that one candidate may move, found or not: planning stays linear
Key = tuple[float, int, int]  # where: in front of which place (0) or at it (1), then the old order


class Schedule:
    """The order of a graph, as written at first, in which pure nodes move to earlier places.

    Args:
        model: the model of the graph as it is written.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._at = model.order
        # What may come to write stays where it is; an explicit clone never writes.
        self._fixed = {c.node for c in model.candidates if not c.kind.is_clone}
        self._moved: dict[Node, Key] = {}
        self._anchor: dict[Node, Node] = {}

    @functools.cached_property
    def _barriers(self) -> list[int]:
        """The places of all barriers; asked for once something may move at all."""
        return [i for node, i in self._at.items() if is_barrier(node)]

    def order(self) -> Order | None:
        """Return the order as it is now; ``None`` when nothing moved."""
        if not self._moved:
            return None
        nodes = tuple(sorted(self._at, key=self._key))
        moved: dict[Node, list[Node]] = {}
        for node in nodes:
            if node in self._anchor:
                moved.setdefault(self._anchor[node], []).append(node)
        return Order(nodes, {anchor: tuple(group) for anchor, group in moved.items()})

    def move(self, readers: Iterable[Node], before: Node, limit: int) -> bool:
        """Move readers, and what they need, in front of a node that itself stays; all or none.

        Of a reader that must stay the views that it reads move: it can be given copies of them then, where
        these are small enough.

        Args:
            readers: the nodes to move.
            before: a candidate or a real write.
            limit: how many bytes the results of all that moves may hold together.

        Returns:
            Whether they stand in front of it now.
        """
        time, group = self._at[before], dict[Node, None]()
        for reader in readers:
            needed = self._needed([reader], time)
            if needed is None:
                needed = self._needed(self._views_of(reader), time) or None
            if needed is None or len(group) > _MOST_MOVED:
                return False
            group.update(dict.fromkeys(needed))
        if sum(price.made(self._model, node) for node in group) > limit:
            return False
        for node in group:
            self._moved[node] = (time, 0, self._at[node])
            self._anchor[node] = before
        return True

    def moved_for(self, readers: Iterable[Node]) -> tuple[Node, ...]:
        """Return which of the readers moved, and of those that stay the views that did."""
        found: list[Node] = []
        for reader in readers:
            nodes = [reader] if reader in self._moved else filter(viewed, reader.all_input_nodes)
            found += [node for node in nodes if node in self._moved]
        return tuple(found)

    def _views_of(self, reader: Node) -> list[Node]:
        """Return the views of which a reader that stays could be given copies.

        Not what it may write: there the copy would be its own clone, made early, and nothing saved.
        """
        own = {c.operand_node for c in self._model.candidates_of.get(reader, ())}
        return [n for n in reader.all_input_nodes if viewed(n) is not None and n not in own]

    def _key(self, node: Node) -> Key:
        return self._moved.get(node, (self._at[node], 1, 0))

    def _needed(self, readers: Iterable[Node], time: int) -> list[Node] | None:
        """Return what must move for ``readers`` to come before ``time``; ``None`` when something may not."""
        pending, found = list(readers), dict[Node, None]()
        while pending:
            node = pending.pop()
            if node in found or self._key(node) <= (time, 0, self._at[node]):
                continue
            # The write itself, and all that comes from it, is among what may not move: no cycle arises.
            if len(found) == _MOST_MOVED or not self._may_move(node, time):
                return None
            found[node] = None
            pending.extend(node.all_input_nodes)
        return list(found)

    def _may_move(self, node: Node, time: int) -> bool:
        if node in self._fixed or not is_movable(node):
            return False
        at = self._at[node]
        crossed = bisect.bisect_left(self._barriers, time)
        if crossed < len(self._barriers) and self._barriers[crossed] < at:
            return False
        storages = {p.storage for _, p in self._model.operands((node.args, node.kwargs))}
        writes = (w for s in storages for w in self._model.writes.get(s, ()))
        return not any(time <= w.time < at for w in writes)
