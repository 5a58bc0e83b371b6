"""What an operator reads, writes and aliases, derived from its schema.

Its traits say what it does beyond its schema, or other than it; everything else is derived.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Node

from .. import _torch
from .declarations import Declaration, contracts, declaration_of
from .nested import inside
from .traits import Traits, row_of

_NOTHING_KNOWN = Traits()
_TRAITS = tuple(field.name for field in dataclasses.fields(Traits))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OpSchema(Traits):
    """An operator's contract: its traits, and what its schema says.

    Args:
        name: ``"aten::index_put"``, without overload.
        names: argument names, in order.
        kwarg_only: names of the keyword-only ones.
        required: names of those without a default.
        mutable: names of the arguments it writes.
        all_mutable: those, and what it writes although its schema does not say so (declared by users).
        returns: for each returned value, the name of the argument it aliases, or ``None``.
        view: whether every returned tensor is a view of an argument.
        makes_tensor: whether its first result is a tensor.
        write_only: mutable arguments that it overwrites whole and never reads (declared by users).
        unread: other arguments whose elements it never reads (declared by users).
        elementwise: whether it works element by element (declared by users).
        views_several: whether its results are views of several operands; no operator of torch's has such.
        seeded: whether it draws random numbers, which it does in the order in which elements lie in memory.
    """

    name: str
    names: tuple[str, ...]
    kwarg_only: frozenset[str]
    required: tuple[str, ...]
    mutable: tuple[str, ...]
    returns: tuple[str | None, ...]
    view: bool
    makes_tensor: bool
    write_only: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    elementwise: bool = False
    views_several: bool = False
    seeded: bool = False
    all_mutable: tuple[str, ...] = ()


def is_operator(target: Any) -> bool:
    """Return whether ``target`` is an operator overload with a schema."""
    kind = _torch.op_overload()
    return type(target) is kind or isinstance(target, kind)


def schema_of(op: Any) -> OpSchema:
    """Return the contract of an operator overload."""
    # By identity, which the entry keeps alive: to hash an operator takes torch a microsecond, and every
    # node is asked several times.
    known = contracts.get(id(op))
    if known is None:
        known = contracts[id(op)] = op, _contract(op, declaration_of(op))
    contract: OpSchema = known[1]
    return contract


def traits_of(target: Any) -> Traits:
    """Return what is known of the target of a node, whatever it is; nothing of what is no operator."""
    known = contracts.get(id(target))
    if known is not None:
        traits: Traits = known[1]
        return traits
    return schema_of(target) if is_operator(target) else _NOTHING_KNOWN


def _contract(op: Any, declared: Declaration | None) -> OpSchema:
    schema = op._schema
    name = str(schema.name)
    row = row_of(name, op._overloadname)
    aliased = [a for a in schema.arguments if a.alias_info is not None and not row.writes_nothing]
    mutable = tuple(a.name for a in aliased if a.alias_info.is_write)
    returns = tuple(_aliased(schema, r) for r in schema.returns)
    if row.shares_first:
        returns = (schema.arguments[0].name,)
    names = tuple(a.name for a in schema.arguments)
    declared = declared or Declaration(name)
    return OpSchema(
        **{trait: getattr(row, trait) for trait in _TRAITS},
        name=name,
        names=names,
        kwarg_only=frozenset(a.name for a in schema.arguments if a.kwarg_only),
        required=tuple(a.name for a in schema.arguments if not a.has_default_value()),
        mutable=mutable,
        returns=returns,
        view=not mutable and not declared.writes and bool(returns) and all(r is not None for r in returns),
        makes_tensor=bool(schema.returns) and str(schema.returns[0].type) == "Tensor",
        write_only=frozenset(declared.write_only),
        unread=frozenset(n for n in names if n not in mutable and not declared.reads_argument(n)),
        elementwise=declared.elementwise,
        views_several=len(set(returns) - {None}) > 1,
        seeded=torch.Tag.nondeterministic_seeded in op.tags,
        all_mutable=tuple(dict.fromkeys((*mutable, *map(str, declared.writes)))),
    )


def _aliased(schema: Any, ret: Any) -> str | None:
    if ret.alias_info is None:
        return None
    returned = ret.alias_info.before_set | ret.alias_info.after_set
    for argument in schema.arguments:
        info = argument.alias_info
        # A list of views is declared from the other side: its argument turns into "anything" (a -> *).
        if info is not None and (info.before_set & returned or (not returned and "*" in info.after_set)):
            return str(argument.name)
    return None


def arguments(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield ``(name, value)`` of the arguments that a node passes to its operator."""
    schema = schema_of(node.target)
    yield from zip(schema.names, node.args, strict=False)
    yield from node.kwargs.items()


def argument(node: Node, name: str) -> Any:
    """Return one argument of a node by name, ``None`` where it is left out."""
    names, args = schema_of(node.target).names, node.args
    position = names.index(name) if name in names else len(args)
    return args[position] if position < len(args) else node.kwargs.get(name)


def target_name(target: Any) -> str:
    """Return how reports name the target of a node."""
    if is_operator(target):
        return schema_of(target).name
    return str(getattr(target, "__name__", target))


def has_tensor(value: Any) -> bool:
    """Return whether there is a tensor in a nested value."""
    return isinstance(value, torch.Tensor) or next(tensors(value), None) is not None


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Return the tensors of a nested value."""
    return inside(torch.Tensor, value)
