"""One random step of a random graph: a view, a reader, a candidate of some kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from . import collective, function, reader, subgraph, wrapper
from . import view as random_view
from .builder import GraphBuilder
from .draws import Draws
from .pool import Pool

aten: Any = torch.ops.aten
_DEEPEST, _DEEPEST_OF_WILD = 2, 3  # how deep calls of subgraphs are nested


class Steps:
    """What happens in a graph, or in a subgraph of it, one step at a time.

    Args:
        pool: its values.
        index: a tensor of two different indices, 0 and 1, if there is one.
        depth: 0 for the graph itself.
    """

    def __init__(self, pool: Pool, index: Node | None = None, depth: int = 0) -> None:
        self.draws: Draws = pool.draws
        self.pool = pool
        self.builder: GraphBuilder = pool.builder
        self.index = index
        self.depth = depth

    def some(self, most: int) -> None:
        """Add one step or more, unless there are many candidates already."""
        for _ in range(self.draws.between(1, most)):
            if self.pool.candidates < 7:
                self._step()

    def _step(self) -> None:
        actions: tuple[tuple[int, Callable[[], None]], ...] = (
            (1, lambda: None),
            (5, self._clone),
            (10, self._wrapped),
            (8, self._through_view),
            (5, self._index_put),
            (5, self._scatter),
            (10, self._view),
            (7, self._read),
            (3, self._collective),
            (5, self._function),
            (2, self._subgraph),
            (5 if self.depth else 0, self._subgraph),
        )
        ticket = self.draws.below(sum(weight for weight, _ in actions))
        for weight, action in actions:
            ticket -= weight
            if ticket < 0:
                action()
                return

    def _some_view(self, node: Node) -> Node:
        return random_view.some(self.builder, self.draws, node)

    def _view(self) -> None:
        self.pool.keep(self._some_view(self.pool.any()))

    def _read(self) -> None:
        reader.add(self.pool)

    def _collective(self) -> None:
        """Start a collective, do something else meanwhile, and wait for it."""
        node = self.pool.any(fresh=75)
        if self.depth:
            return  # only the graph itself is run without a process group
        if not node.meta["val"].dim() or not node.meta["val"].numel() or not collective.is_possible():
            return
        started = collective.start(self.builder, self.draws, node)
        for _ in range(self.draws.of((1, 0, 2))):
            self._step()
        self.pool.keep(collective.wait(self.builder, started))

    def _clone(self) -> None:
        node = self.pool.any()
        dense = self.draws.chance(15)
        options = {"memory_format": torch.contiguous_format} if dense else {}
        self.pool.candidates += 1
        self.pool.keep(self.builder.call(aten.clone.default, node, **options))

    def _scatter(self) -> None:
        node = self.pool.writable(rank=1)
        if node is None:
            return
        view = random_view.scattered(self.builder, self.draws, node)
        part = view.node.meta["val"]
        source = self.pool.shaped(part.shape, part.dtype)
        self.pool.replaced(node, view.back(self.builder, source))

    def _index_put(self) -> None:
        node, draws, call = self.pool.writable(rank=1), self.draws, self.builder.call
        if node is None or self.index is None:
            return
        value = node.meta["val"]
        dims = [d for d in range(min(2, value.dim())) if value.shape[d] >= 2]
        if not dims:
            return
        dim, index, accumulate = draws.of(dims), self.index, False
        if draws.chance(20):
            flat = self.pool.shaped(torch.Size([2]), torch.int64)
            index, accumulate = call(aten.remainder.Scalar, flat, value.shape[dim]), True
        shape = torch.Size([*value.shape[:dim], 2, *value.shape[dim + 1 :]])
        source = self.pool.shaped(shape if draws.chance(85) else torch.Size([]), value.dtype)
        target = aten._unsafe_index_put.default if draws.chance(25) else aten.index_put.default
        more = (accumulate or draws.chance(25),)
        new = call(target, node, [*([None] * dim), index], source, *(more if more[0] else ()))
        self.pool.replaced(node, new)

    def _wrapped(self) -> None:
        node = self.pool.writable()
        if node is not None:
            wrapper.wrap(self.pool, node)

    def _through_view(self) -> None:
        """Write into a view and scatter it back, as functionalization does."""
        node, draws = self.pool.writable(rank=1), self.draws
        if node is None:
            return
        chain = [random_view.scattered(self.builder, draws, node)]
        if draws.chance(35) and chain[0].node.meta["val"].dim():
            chain.append(random_view.scattered(self.builder, draws, chain[0].node))
        inner = chain[-1].node
        if draws.chance(70):
            new = wrapper.wrap(self.pool, inner)
        else:
            new = self.pool.shaped(inner.meta["val"].shape, inner.meta["val"].dtype)
        if new is None or new.meta["val"].shape != inner.meta["val"].shape:
            return
        for view in reversed(chain):
            new = view.back(self.builder, new)
        self.pool.replaced(node, new)

    def _function(self) -> None:
        function.add(self.pool)

    def _subgraph(self) -> None:
        """Call a subgraph whose own steps are of the same kinds."""
        if self.depth < (_DEEPEST_OF_WILD if self.draws.wild else _DEEPEST):
            depth = self.depth + 1
            subgraph.call(self.pool, lambda pool: Steps(pool, depth=depth).some(3))
