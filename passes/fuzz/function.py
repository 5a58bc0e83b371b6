"""Random calls of functional operators with an in-place form: indexed writes, elementwise ones, lists.

An index never names an element twice unless the operator accumulates, so results do not depend on an order.
Numbers that are filled in are different each time, so that no write repeats another one by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from .pool import Pool
from .reader import MOST

aten: Any = torch.ops.aten


def add(pool: Pool) -> None:
    """Add one call that writes a value of the pool, or several of them."""
    if pool.draws.chance(20):
        _listed(pool)
        return
    node = pool.writable(rank=1)
    if node is not None:
        new = pool.draws.of(_KINDS)(pool, node)
        if new is not None:
            pool.replaced(node, new)


def _number(pool: Pool) -> int:
    return 1000 * len(pool.values) + 7 * pool.candidates + 13


def _rows(pool: Pool, node: Node) -> tuple[int, Node, torch.Size]:
    """Return a dimension, different indices into it, and the shape of what they select.

    They name the last rows in reverse: a source is mostly made of the first ones, and rows that are put
    back where they were would make an illegal choice look legal.
    """
    draws, shape = pool.draws, node.meta["val"].shape
    dim = draws.below(len(shape))
    step = draws.of((1, 1, 2)) if shape[dim] > 2 else 1
    count = draws.between(1, max(1, shape[dim] // 2 // step))
    index = numbers(pool, shape[dim] - 1 - (count - 1) * step, count, step)
    if count > 1:
        index = pool.builder.call(aten.flip.default, index, [0])
    return dim, index, torch.Size([*shape[:dim], count, *shape[dim + 1 :]])


def numbers(pool: Pool, start: int, count: int, step: int = 1) -> Node:
    """Return an index tensor ``start, start + step, ...``."""
    options = {"dtype": torch.int64, "device": torch.device("cpu"), "pin_memory": False}
    return pool.builder.call(aten.arange.start_step, start, start + count * step, step, **options)


def _index_add(pool: Pool, node: Node) -> Node:
    dim, index, shape = _rows(pool, node)
    more = {"alpha": 3} if pool.draws.chance(25) else {}
    source = pool.shaped(shape, node.meta["val"].dtype)
    return pool.builder.call(aten.index_add.default, node, dim, index, source, **more)


def _index_copy(pool: Pool, node: Node) -> Node:
    dim, index, shape = _rows(pool, node)
    source = pool.shaped(shape, node.meta["val"].dtype)
    return pool.builder.call(aten.index_copy.default, node, dim, index, source)


def _index_reduce(pool: Pool, node: Node) -> Node:
    dim, index, shape = _rows(pool, node)
    source = pool.shaped(shape, node.meta["val"].dtype)
    return pool.builder.call(aten.index_reduce.default, node, dim, index, source, "prod")


def _index_fill(pool: Pool, node: Node) -> Node:
    dim, index, _ = _rows(pool, node)
    if pool.draws.chance(40):
        value = pool.shaped(torch.Size([]), node.meta["val"].dtype)
        return pool.builder.call(aten.index_fill.int_Tensor, node, dim, index, value)
    return pool.builder.call(aten.index_fill.int_Scalar, node, dim, index, _number(pool))


def _scatter(pool: Pool, node: Node) -> Node:
    draws, call = pool.draws, pool.builder.call
    dim, index, shape = _rows(pool, node)
    aligned = call(aten.view.default, index, [-1 if d == dim else 1 for d in range(len(shape))])
    wide = call(aten.expand.default, aligned, list(shape))
    target = draws.of((aten.scatter.src, aten.scatter_add.default, aten.scatter_reduce.two, None))
    if target is None:
        return call(aten.scatter.value, node, dim, wide, _number(pool))
    source = pool.shaped(shape, node.meta["val"].dtype)
    more = (draws.of(("sum", "prod")),) if target is aten.scatter_reduce.two else ()
    return call(target, node, dim, wide, source, *more)


def _masked_scatter(pool: Pool, node: Node) -> Node:
    draws, call, value = pool.draws, pool.builder.call, node.meta["val"]
    every = call(aten.view.default, numbers(pool, 0, value.numel()), list(value.shape))
    rest = call(aten.remainder.Scalar, every, draws.between(2, 3))
    mask = call(aten.eq.Scalar, rest, draws.below(2))
    return call(aten.masked_scatter.default, node, mask, pool.shaped(value.shape, value.dtype))


def _put(pool: Pool, node: Node) -> Node:
    draws, value = pool.draws, node.meta["val"]
    count = draws.between(1, max(1, value.numel() // 2))
    index = numbers(pool, value.numel() - count, count)
    source = pool.shaped(torch.Size([count]), value.dtype)
    more = (True,) if draws.chance(30) else ()
    return pool.builder.call(aten.put.default, node, index, source, *more)


def _fill(pool: Pool, node: Node) -> Node:
    return pool.builder.call(aten.fill.Scalar, node, _number(pool))


def _drawn(pool: Pool, node: Node) -> Node:
    """Fill with random numbers, which are drawn in the order of memory."""
    if pool.draws.chance(50):
        return pool.builder.call(aten.bernoulli.p, node, 0.5)
    return pool.builder.call(aten.random.to, node, MOST)


def _gcd(pool: Pool, node: Node) -> Node | None:
    """Combine element by element; the other operand may be of another dtype or shape."""
    value = node.meta["val"]
    if pool.draws.chance(75):
        return pool.builder.call(aten.gcd.default, node, pool.shaped(value.shape, value.dtype))
    other = pool.any()
    if not _broadcasts(value.shape, other.meta["val"].shape):
        return None
    return pool.builder.call(aten.gcd.default, node, other)


def _broadcasts(one: torch.Size, two: torch.Size) -> bool:
    return all(1 in (a, b) or a == b for a, b in zip(reversed(one), reversed(two), strict=False))


def _listed(pool: Pool) -> None:
    """Add a call over a list of values; each result may meet another fate."""
    draws, call = pool.draws, pool.builder.call
    chosen = [pool.writable() for _ in range(draws.of((2, 1, 3)))]
    nodes = [n for n in chosen if n is not None]
    if draws.chance(90):
        nodes = list(dict.fromkeys(nodes))  # one tensor twice is rare
    if not nodes:
        return
    kind = draws.of(("add", "scales", "sums", "products", "factor"))
    if kind == "add":
        made = call(aten._foreach_add.Scalar, nodes, _number(pool))
    elif kind == "scales":
        made = call(aten._foreach_mul.ScalarList, nodes, [2 * i + 3 for i in range(len(nodes))])
    elif kind == "factor":
        made = call(aten._foreach_mul.Tensor, nodes, pool.shaped(torch.Size(()), nodes[0].meta["val"].dtype))
    else:
        values = [n.meta["val"] for n in nodes]
        others = [pool.shaped(v.shape, v.dtype) for v in values]
        target = aten._foreach_add.List if kind == "sums" else aten._foreach_mul.List
        made = call(target, nodes, others)
    for i, node in enumerate(nodes):
        pool.replaced(node, pool.builder.item(made, i))


_KINDS: tuple[Callable[[Pool, Node], Node | None], ...] = (
    _index_add,
    _scatter,
    _index_copy,
    _put,
    _index_fill,
    _masked_scatter,
    _index_reduce,
    _fill,
    _gcd,
    _drawn,
)
