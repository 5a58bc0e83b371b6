"""Random wrappers of mutable operators (v1 and v2), with aliases, lists and ``None`` among their operands."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from . import adversary
from . import view as random_view
from .pool import Pool


def wrap(pool: Pool, node: Node) -> Node | None:
    """Add a wrapper of a mutable operator that writes ``node``; returns the new version of it."""
    op = adversary.operator(pool.draws.of(adversary.names()))
    return _wrap_v1(pool, op, node) if pool.draws.chance(50) else _wrap_v2(pool, op, node)


def _arguments(pool: Pool, op: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the mutable arguments of an operator, and values for those that it only reads."""
    written: list[Any] = []
    read: dict[str, Any] = {}
    for argument in op._schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            written.append(argument)
        elif str(argument.type) == "List[Tensor]":
            read[argument.name] = [pool.any(fresh=75) for _ in range(pool.draws.between(0, 3))]
        elif str(argument.type).startswith("Optional") and pool.draws.chance(50):
            read[argument.name] = None
        else:
            read[argument.name] = pool.any(fresh=75)
    return written, read


def _operand(pool: Pool, argument: Any, first: list[Node]) -> Any:
    """Return what is written through one argument: a node, a list of nodes or ``None``."""
    kind = str(argument.type)
    if kind.startswith("Optional") and pool.draws.chance(35):
        return None
    if "List" in kind:
        rest = [pool.writable() for _ in range(pool.draws.between(1, 2))]
        return [*(first.pop() for _ in first[:]), *(n for n in rest if n is not None)]
    return first.pop() if first else pool.writable()


def _wrap_v1(pool: Pool, op: Any, node: Node) -> Node | None:
    written, read = _arguments(pool, op)
    first = [node]
    values = {a.name: _operand(pool, a, first) for a in written}
    if any(values[a.name] is None and not str(a.type).startswith("Optional") for a in written):
        return None
    results = pool.builder.v1(op, **read, **values)
    for extra in results[: len(results) - len(written)]:
        if extra is not None:
            pool.keep(extra)
    mine = None
    for a, result in zip(written, results[len(results) - len(written) :], strict=True):
        old = values[a.name] if isinstance(result, list) else [values[a.name]]
        for was, now in zip(old, result if isinstance(result, list) else [result], strict=True):
            if now is not None:
                pool.replaced(was, now)
                mine = now if was is node else mine
    return mine


def _wrap_v2(pool: Pool, op: Any, node: Node) -> Node | None:
    written, read = _arguments(pool, op)
    first = [node]
    views: dict[str, Any] = {}
    bases: list[Node] = []
    for argument in written:
        value = _operand(pool, argument, first)
        if value is None and not str(argument.type).startswith("Optional"):
            return None
        views[argument.name] = _based(pool, value, bases)
    results = pool.builder.v2(op, views, **read)
    for extra in results[: len(results) - len(bases)]:
        if extra is not None:
            pool.keep(extra)
    mine = None
    for was, now in zip(bases, results[len(results) - len(bases) :], strict=True):
        pool.replaced(was, now)
        mine = now if was is node else mine
    return mine


def _based(pool: Pool, value: Any, bases: list[Node]) -> Any:
    """Return the pair ``(base, view)`` for an operand of a v2 wrapper."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_based(pool, v, bases) for v in value]
    if bases and pool.draws.chance(35):
        value = pool.draws.of(bases)
    if value not in bases:
        bases.append(value)
    view = value
    for _ in range(pool.draws.of((0, 0, 1, 1, 2))):
        view = random_view.inside(pool.builder, pool.draws, view)
    return (value, view)
