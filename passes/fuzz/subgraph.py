"""Random calls of subgraphs: branches, loops, scans, mapped functions, called regions.

As torch traces them, subgraphs return fresh tensors; now and then one hands on what it was given, which is
what a clean-up of no-ops may leave. Carries keep their layout.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .. import _torch
from .builder import GraphBuilder
from .pool import Pool

aten: Any = torch.ops.aten
Fill = Callable[[Pool], None]  # adds random steps


def call(pool: Pool, fill: Fill) -> None:
    """Add a call of subgraphs that ``fill`` makes, and keep its results."""
    pool.draws.of((_cond, _while_loop, _invoke_subgraph, _scan, _map))(pool, fill)


@dataclasses.dataclass(frozen=True, slots=True)
class _Body:
    """A subgraph in the making: its pool, and its placeholders."""

    pool: Pool
    given: list[Node]

    @classmethod
    def of(cls, outer: Pool, values: list[torch.Tensor], hidden: int = 0) -> _Body:
        """Begin one whose placeholders are laid out like ``values``; the first ``hidden`` are not used."""
        pool = Pool(outer.draws, GraphBuilder(outer.builder.fake_mode))
        given = [pool.builder.operand(value) for value in values]
        for node in given[hidden:]:
            pool.keep(node)
        return cls(pool, given)

    def module(self, outputs: list[Node] | Node) -> GraphModule:
        """Return the finished subgraph."""
        return self.pool.builder.finished(outputs)

    def unplaced(self, outputs: list[Node]) -> GraphModule:
        """Return the finished subgraph, which may be given values at any offset.

        Raises:
            ValueError: it names bytes by their offset.
        """
        module = self.module(outputs)
        if any("torch.ops.aten.as_strided" in t or "_storage_offset" in t for t in _texts(module)):
            raise ValueError("slices begin at other offsets than the first one")
        return module

    def result(self, like: torch.Tensor, taken: set[int | None], *, still: bool = False) -> Node:
        """Return a fresh value of a layout; ``taken`` are the storages of other results.

        Args:
            like: laid out like this.
            taken: is added to.
            still: whether what is handed on as it is may not be returned, not even rarely.
        """
        pool, draws = self.pool, self.pool.draws
        free = {pool.storage(n) for n in self.given} | taken
        alike = [n for n in pool.values if _layout(n.meta["val"]) == _layout(like)]
        if not still and alike and draws.chance(4):
            return alike[-1]
        fresh = [n for n in alike if pool.storage(n) not in free]
        if fresh:
            found = fresh[-1] if draws.chance(75) else draws.of(fresh)
        else:
            found = self._made(like, alike)
        taken.add(pool.storage(found))
        return found

    def _made(self, like: torch.Tensor, alike: list[Node]) -> Node:
        for node in reversed(alike):
            copy = self.pool.builder.call(aten.clone.default, node)
            if _layout(copy.meta["val"]) == _layout(like):
                return copy
        made = self.pool.constant(like.shape, like.dtype)
        if _layout(made.meta["val"]) != _layout(like):
            raise ValueError("no value of this layout")
        return made

    def something(self, taken: set[int | None]) -> Node:
        """Return a dense value that was made last, fresh."""
        pool = self.pool
        node = pool.latest()
        owned = {pool.storage(n) for n in self.given} | taken
        if pool.storage(node) in owned or not _is_plain(node.meta["val"]):
            node = pool.builder.call(aten.clone.default, node, memory_format=torch.contiguous_format)
        taken.add(pool.storage(node))
        return node


def _texts(module: GraphModule) -> list[str]:
    return [str(child.graph) for child in module.modules() if isinstance(child, GraphModule)]


def _layout(value: torch.Tensor) -> tuple[Any, ...]:
    strides = tuple(s for s, n in zip(value.stride(), value.shape, strict=True) if n > 1)
    return value.dtype, tuple(value.shape), strides, value.storage_offset()


def _is_plain(value: torch.Tensor) -> bool:
    return value.is_contiguous() and not value.storage_offset()


def _is_dense(value: torch.Tensor) -> bool:
    """Return whether a clone has the same strides."""
    return torch.empty_like(value).stride() == value.stride()


def _values(nodes: list[Node]) -> list[torch.Tensor]:
    return [n.meta["val"] for n in nodes]


def _some(pool: Pool, least: int, most: int) -> list[Node]:
    return [pool.any(fresh=75) for _ in range(pool.draws.between(least, most))]


def _dense(pool: Pool, node: Node) -> Node:
    """Return a value that a loop may carry: its clone is laid out like itself, and begins a storage."""
    value = node.meta["val"]
    if value.numel() and _is_dense(value) and not value.storage_offset():
        return node
    return pool.builder.call(aten.clone.default, node, memory_format=torch.contiguous_format)


def _finish(pool: Pool, target: str, args: tuple[Any, ...], values: list[Any], olds: list[Any]) -> None:
    """Add a call and its results; ``olds`` are the operands that they are new versions of, or ``None``."""
    made = pool.builder.called(_torch.hop(target), args, tuple(values))
    for i, old in enumerate(olds):
        if old is None:
            pool.keep(pool.builder.item(made, i))
        else:
            pool.replaced(old, pool.builder.item(made, i))
    pool.candidates += 1


def _pred(pool: Pool) -> Node:
    """Return a condition: a constant of the module, or one that depends on values."""
    call = pool.builder.call
    if pool.draws.chance(50):
        total = call(aten.sum.default, pool.any())
        return call(aten.eq.Scalar, call(aten.remainder.Scalar, total, 2), 0)
    options = {"dtype": torch.bool, "device": torch.device("cpu"), "pin_memory": False}
    return call(aten.full.default, [], pool.draws.chance(50), **options)


def _update(body: _Body, node: Node, at: Node) -> None:
    """Replace a row of a value, the one that a counter says."""
    pool, value = body.pool, node.meta["val"]
    if not value.dim() or not value.numel() or not pool.draws.chance(65):
        return
    row = pool.builder.call(aten.remainder.Scalar, at, value.shape[0])
    index = pool.builder.call(aten.view.default, row, [1])
    source = pool.shaped(torch.Size([1, *value.shape[1:]]), value.dtype)
    pool.replaced(node, pool.builder.call(aten.index_put.default, node, [index], source))


def _branch(pool: Pool, operands: list[Node], fill: Fill) -> tuple[_Body, list[Node], list[int | None]]:
    """Return a subgraph with its results, and which operand each of them is a new version of."""
    draws, body, taken = pool.draws, _Body.of(pool, _values(operands)), set[int | None]()
    fill(body.pool)
    results, olds = [], list[int | None]()
    for _ in range(draws.between(1, 2)):
        number = draws.below(len(operands))
        if draws.chance(65) and number not in olds and _is_dense(operands[number].meta["val"]):
            results.append(body.result(body.given[number].meta["val"], taken))
            olds.append(number)
        else:
            results.append(body.something(taken))
            olds.append(None)
    return body, results, olds


def _cond(pool: Pool, fill: Fill) -> None:
    operands, pred = _some(pool, 1, 3), _pred(pool)
    one, results, olds = _branch(pool, operands, fill)
    two, taken = _Body.of(pool, _values(operands)), set[int | None]()
    fill(two.pool)
    others = [two.result(value, taken) for value in _values(results)]
    modules = [pool.builder.subgraph(one.module(results)), pool.builder.subgraph(two.module(others))]
    made = [pool.builder.fresh(value) for value in _values(results)]
    _finish(pool, "cond", (pred, *modules, tuple(operands)), made, _old(operands, olds))


def _old(operands: list[Node], numbers: list[int | None]) -> list[Node | None]:
    return [None if i is None else operands[i] for i in numbers]


def _invoke_subgraph(pool: Pool, fill: Fill) -> None:
    operands = _some(pool, 1, 3)
    body, results, olds = _branch(pool, operands, fill)
    module = pool.builder.subgraph(body.module(results))
    for _ in range(2 if pool.draws.chance(35) else 1):
        made = [pool.builder.fresh(value) for value in _values(results)]
        args = (module, str(module.target), *operands)
        _finish(pool, "invoke_subgraph", args, made, _old(operands, olds))
        operands = [_another(pool, node) for node in operands]


def _another(pool: Pool, node: Node) -> Node:
    """Return a value that is laid out like another one."""
    alike = [n for n in pool.values if _layout(n.meta["val"]) == _layout(node.meta["val"])]
    return pool.draws.of(alike[::-1]) if alike else node


def _while_loop(pool: Pool, fill: Fill) -> None:
    draws, call = pool.draws, pool.builder.call
    zero = call(aten.full.default, [], 0, dtype=torch.int64, device=torch.device("cpu"), pin_memory=False)
    carried = [zero, *(_dense(pool, n) for n in _some(pool, 1, 2))]
    captured = _some(pool, 0, 2)
    test = _Body.of(pool, _values([*carried, *captured]))
    go_on = test.pool.builder.call(aten.lt.Scalar, test.given[0], draws.of((2, 1, 3, 0)))
    if draws.chance(20):  # it reads a carry, and goes on whatever that is
        total = test.pool.builder.call(aten.sum.default, test.given[1])
        odd = test.pool.builder.call(aten.remainder.Scalar, total, 2)
        small = test.pool.builder.call(aten.lt.Scalar, odd, 2)
        go_on = test.pool.builder.call(aten.bitwise_and.Tensor, go_on, small)
    body, taken = _Body.of(pool, _values([*carried, *captured]), hidden=1), set[int | None]()
    counter = body.given[0]
    for node in body.given[1 : len(carried)]:
        _update(body, node, counter)
    fill(body.pool)
    results = [body.pool.builder.call(aten.add.Tensor, counter, 1)]
    results += [body.result(n.meta["val"], taken) for n in body.given[1 : len(carried)]]
    modules = [pool.builder.subgraph(test.module(go_on)), pool.builder.subgraph(body.module(results))]
    made = [pool.builder.fresh(value) for value in _values(results)]
    args = (*modules, tuple(carried), tuple(captured))
    _finish(pool, "while_loop", args, made, [None, *carried[1:]])


def _slices(pool: Pool) -> tuple[list[Node], list[torch.Tensor]]:
    """Return what is scanned over, and what one slice of each is like."""
    first = pool.any(rank=1)
    count = first.meta["val"].shape[0]
    again = pool.any(rank=1)
    xs = [first, *([again] if pool.draws.chance(25) and again.meta["val"].shape[0] == count else [])]
    if not count:
        raise ValueError("nothing to scan over")
    return xs, [_sliced(pool, n.meta["val"]) for n in xs]


def _sliced(pool: Pool, value: torch.Tensor) -> torch.Tensor:
    with pool.builder.fake_mode:
        return value.select(0, 0)


def _stacked(pool: Pool, count: int, value: torch.Tensor) -> torch.Tensor:
    with pool.builder.fake_mode:
        return torch.empty([count, *value.shape], dtype=value.dtype)


def _scan(pool: Pool, fill: Fill) -> None:
    init = [_dense(pool, n) for n in _some(pool, 1, 2)]
    xs, slices = _slices(pool)
    captured = _some(pool, 0, 1)
    body, taken = _Body.of(pool, [*_values(init), *slices, *_values(captured)]), set[int | None]()
    fill(body.pool)
    results = [body.result(n.meta["val"], taken) for n in body.given[: len(init)]]
    steps = [body.something(taken) for _ in range(pool.draws.between(1, 2))]
    module = pool.builder.subgraph(body.unplaced([*results, *steps]))
    count = xs[0].meta["val"].shape[0]
    made = [pool.builder.fresh(value) for value in _values(results)]
    made += [_stacked(pool, count, value) for value in _values(steps)]
    args = (module, init, xs, tuple(captured))
    _finish(pool, "scan", args, made, [*init, *(None for _ in steps)])


def _map(pool: Pool, fill: Fill) -> None:
    xs, slices = _slices(pool)
    captured = _some(pool, 0, 2)
    body, taken = _Body.of(pool, [*slices, *_values(captured)]), set[int | None]()
    fill(body.pool)
    results = [body.something(taken) for _ in range(pool.draws.between(1, 2))]
    module = pool.builder.subgraph(body.unplaced(results))
    made = [_stacked(pool, xs[0].meta["val"].shape[0], value) for value in _values(results)]
    _finish(pool, "map_impl", (module, xs, captured), made, [None for _ in results])
