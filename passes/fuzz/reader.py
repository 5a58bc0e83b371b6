"""Random readers: elementwise ones, reductions, and those whose result is not what fake tensors say.

Random numbers are drawn in the order of memory, some operators make other strides than their fake tensors
have, and what is moved to the device where it is remains itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from .pool import Pool

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims
MOST = 1 << 30  # random numbers are below


def add(pool: Pool) -> None:
    """Add one reader of a value of the pool."""
    node = pool.any(fresh=70)
    pool.keep(pool.draws.of(_KINDS)(pool, node))


def _neg(pool: Pool, node: Node) -> Node:
    return pool.builder.call(aten.neg.default, node)


def _add(pool: Pool, node: Node) -> Node:
    value = node.meta["val"]
    return pool.builder.call(aten.add.Tensor, node, pool.shaped(value.shape, value.dtype))


def _sum(pool: Pool, node: Node) -> Node:
    return pool.builder.call(aten.sum.default, node)


def _flip(pool: Pool, node: Node) -> Node:
    rank = node.meta["val"].dim()
    return pool.builder.call(aten.flip.default, node, [pool.draws.below(rank)]) if rank else _neg(pool, node)


def _cat(pool: Pool, node: Node) -> Node:
    value = node.meta["val"]
    if not value.dim():
        return _neg(pool, node)
    return pool.builder.call(aten.cat.default, [node, pool.shaped(value.shape, value.dtype)])


def _square(pool: Pool, node: Node) -> Node:
    return pool.builder.call(aten.mul.Tensor, node, node)


def _drawn(pool: Pool, node: Node) -> Node:
    if pool.draws.chance(50):
        return pool.builder.call(aten.randint_like.default, node, MOST)
    return pool.builder.call(aten.bernoulli.p, node, 0.5)


def _lying(pool: Pool, node: Node) -> Node:
    value, call = node.meta["val"], pool.builder.call
    kind = pool.draws.of(("divide", "heaviside", "roll", "fill"))
    if kind == "heaviside":
        return call(aten.heaviside.default, node, pool.shaped(value.shape, value.dtype))
    if kind == "roll" and value.dim():
        return call(aten.roll.default, node, [1], [pool.draws.below(value.dim())])
    if kind == "fill" and value.dim():
        first = call(aten.arange.start_step, 0, 1, 1, dtype=torch.int64, device=value.device)
        return call(aten.index_fill.int_Scalar, node, pool.draws.below(value.dim()), first, 5)
    return call(aten.div.Scalar_mode, node, 3, rounding_mode="floor")


def _moved(pool: Pool, node: Node) -> Node:
    kind = pool.draws.below(150)
    if kind < 50:
        return pool.builder.call(prims.device_put.default, node, torch.device("cpu"))
    lifted = pool.builder.call(aten.lift.default, node)
    if kind >= 100:
        lifted.meta["val"] = pool.builder.copied(node.meta["val"])  # as from the cache of fake tensors
    return lifted


_KINDS: tuple[Callable[[Pool, Node], Node], ...] = (
    *(_neg, _add, _sum, _flip, _cat, _square),
    *(_drawn, _lying, _moved),
)
