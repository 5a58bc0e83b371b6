"""Families of functional graphs that grow with ``n``, the number of writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch.fx import GraphModule, Node

from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder

aten = torch.ops.aten

_WIDTH = 4  # elements of a row, small: what is timed never looks at them


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """One way to grow a graph.

    Args:
        name: its name, as tables and test names show it.
        text: what its graphs hold.
        build: returns the graph with ``n`` writes, and inputs to run it on.
    """

    name: str
    text: str
    build: Callable[[int], tuple[GraphModule, list[torch.Tensor]]]

    def size_for(self, nodes: int) -> int:
        """Return the ``n`` whose graph has about so many nodes."""
        few, more = (len(self.build(n)[0].graph.nodes) for n in (16, 32))
        return round((nodes - 2 * few + more) * 16 / (more - few))


class _Pool:
    """A builder with one computed storage of ``n`` rows, or one input of them."""

    def __init__(self, *shape: int) -> None:
        self.build = GraphBuilder()
        self.given = self.build.placeholder(torch.arange(_product(shape)).view(shape))
        self.source = self.build.placeholder(torch.arange(_WIDTH) * 3)
        self.outputs: list[Node] = []

    def fresh(self) -> Node:
        return self.build.call(aten.neg.default, self.given)

    def row(self, of: Node, i: int, dim: int = 0) -> Node:
        return self.build.call(aten.select.int, of, dim, i)

    def v1(self, view: Node) -> Node:
        return self.build.v1(adversary.operator("mix"), x=view, other=self.source)[-1]  # type: ignore[no-any-return]

    def v2(self, base: Node, view: Node) -> Node:
        written = self.build.v2(adversary.operator("mix"), {"x": (base, view)}, other=self.source)
        return written[-1]  # type: ignore[no-any-return]

    def read(self, value: Node) -> None:
        self.outputs.append(self.build.call(aten.sum.default, value))

    def done(self) -> tuple[GraphModule, list[torch.Tensor]]:
        return self.build.finished(self.outputs), self.build.inputs


def _product(shape: tuple[int, ...]) -> int:
    return int(torch.Size(shape).numel())


def _views_first(n: int) -> tuple[GraphModule, list[torch.Tensor]]:
    pool = _Pool(n, _WIDTH)
    x = pool.fresh()
    for view in [pool.row(x, i) for i in range(n)]:
        pool.read(pool.v1(view))
    return pool.done()


def _views_lazily(n: int) -> tuple[GraphModule, list[torch.Tensor]]:
    pool = _Pool(n, _WIDTH)
    x = pool.fresh()
    for i in range(n):
        pool.read(pool.v1(pool.row(x, i)))
    return pool.done()


def _strided(n: int) -> tuple[GraphModule, list[torch.Tensor]]:
    pool = _Pool(_WIDTH, n + 1)
    x = pool.fresh()
    for i in range(n):
        pool.read(pool.v1(pool.row(x, i, dim=1)))
        pool.read(pool.row(x, i + 1, dim=1))  # the next column, as it was
    return pool.done()


def _separate_caches(n: int) -> tuple[GraphModule, list[torch.Tensor]]:
    build = GraphBuilder()
    caches = [build.placeholder(torch.arange(4 * _WIDTH).view(4, _WIDTH) + i) for i in range(n)]
    slot, value = build.placeholder(torch.tensor([2])), build.placeholder(torch.arange(_WIDTH).view(1, -1))
    outputs, new = [], []
    for cache in caches:
        new.append(build.call(aten.index_put.default, cache, [slot], value))
        outputs.append(build.call(aten.sum.default, new[-1]))
    for cache, written in zip(caches, new, strict=True):
        build.call(aten.copy_.default, cache, written)
    return build.finished(outputs), build.inputs


def _shared_cache(n: int) -> tuple[GraphModule, list[torch.Tensor]]:
    pool = _Pool(n, 4, _WIDTH)
    slot, value = (
        pool.build.placeholder(torch.tensor([2])),
        pool.build.placeholder(torch.ones(1, _WIDTH).long()),
    )
    cache = pool.given
    for i in range(n):
        layer = pool.build.call(aten.index_put.default, pool.row(cache, i), [slot], value)
        cache = pool.build.call(aten.select_scatter.default, cache, layer, 0, i)
        pool.read(pool.row(cache, i))
    pool.build.call(aten.copy_.default, pool.given, cache)
    return pool.done()


def _chain_v1(n: int) -> tuple[GraphModule, list[torch.Tensor]]:
    pool = _Pool(_WIDTH)
    x = pool.fresh()
    for _ in range(n):
        x = pool.v1(x)
    pool.read(x)
    return pool.done()


def _chain_v2(n: int) -> tuple[GraphModule, list[torch.Tensor]]:
    pool = _Pool(n, _WIDTH)
    x = pool.fresh()
    for i in range(n):
        x = pool.v2(x, pool.row(x, i))
        pool.read(pool.row(x, i))
    return pool.done()


def _fan_v2(n: int) -> tuple[GraphModule, list[torch.Tensor]]:
    pool = _Pool(n, _WIDTH)
    x = pool.fresh()
    for i in range(n):
        pool.read(pool.v2(x, pool.row(x, i)))
    return pool.done()


def _needed_copies(n: int) -> tuple[GraphModule, list[torch.Tensor]]:
    build = GraphBuilder()
    x = build.placeholder(torch.arange(_WIDTH))
    slot, value = build.placeholder(torch.tensor([2])), build.placeholder(torch.arange(1))
    olds = [build.call(aten.mul.Tensor, x, i) for i in range(n)]
    news = [build.call(aten.index_put.default, old, [slot], value) for old in olds]
    total = x
    for one in (*news, *olds):
        total = build.call(aten.sub.Tensor, total, one)
    return build.finished([total]), build.inputs


FAMILIES = (
    Family("views-first", "v1 wrappers on n rows of one storage, all views made before", _views_first),
    Family("views-lazily", "the same, each view made where it is needed", _views_lazily),
    Family("strided", "v1 wrappers on n columns of one storage, the next column read between", _strided),
    Family("separate-caches", "index_put into n inputs, each copied back", _separate_caches),
    Family("shared-cache", "index_put into n layers of one input, scattered back into it", _shared_cache),
    Family("chain-v1", "n v1 wrappers, each on what the one before wrote", _chain_v1),
    Family("chain-v2", "n v2 wrappers on rows, each on the base that the one before wrote", _chain_v2),
    Family(
        "fan-v2", "n v2 wrappers on rows of one and the same base, which each but the last copies", _fan_v2
    ),
    Family(
        "needed-copies", "n index_puts whose old values are read by what needs all new ones", _needed_copies
    ),
)
