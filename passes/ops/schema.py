"""What an operator reads, writes and aliases, derived from its schema.

The tables below correct schemas that say less than the operator does, or other than it; everything else is
derived. Which fake tensors say other strides than the operator gives is in ``true_strides.py``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Node

from .. import _torch
from .declarations import Declaration, contracts, declaration_of

LISTS = (list, tuple)  # the union of the two would be made anew each time it is asked for


# Operators whose result shares the operand's storage although their schema does not say so:
# `_unsafe_view` is a view in all but name, `lift` returns its operand, and `wait_tensor` hands on the
# buffer of its collective.
_ALIAS_UNDECLARED = frozenset(
    {"aten::_unsafe_view", "aten::lift", "_c10d_functional::wait_tensor", "prims::view_of"}
)


# A view whose schema says that it writes its operand.
_NOT_WRITING = frozenset({"prims::as_strided"})
_RETURNS_OPERAND = frozenset({"_c10d_functional::wait_tensor", "aten::lift"})


# Receives write into the tensors that they are given, and hand them on: their schemas say neither. Copies
# by strides read bytes of the storage that their operand need not show, and name them by an offset. Batch
# norms that are no longer made write their running statistics.
_REACHING = frozenset(
    {
        *("_c10d_functional::irecv", "_c10d_functional::batch_p2p_ops"),
        *("aten::as_strided_copy", "aten::_reshape_alias_copy"),
        *("aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"),
    }
)


# Nothing is moved to a device where it is already: then it is the operand that is returned. So it is by
# `lift`, whose fake tensor is a copy where torch takes it from its cache.
_MAY_RETURN_OPERAND = frozenset({"prims::device_put", "aten::lift"})


# Operators whose schema says "view" and that copy when the strides do not allow a view.
_VIEW_OR_COPY = frozenset(
    {"aten::reshape", "aten::contiguous", "aten::flatten", "aten::reshape_as", "aten::to", "aten::ravel"}
)


# Operators that read sizes and strides, never the elements.
_META_ONLY = frozenset(
    {
        *("aten::sym_size", "aten::sym_stride", "aten::sym_numel", "aten::sym_storage_offset"),
        *("aten::size", "aten::stride", "aten::numel", "aten::dim", "aten::storage_offset"),
        *("aten::empty_like", "aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::rand_like"),
        *("aten::randn_like", "aten::randint_like", "aten::new_empty", "aten::new_zeros", "aten::new_ones"),
        *("aten::is_contiguous", "aten::sym_is_contiguous", "aten::is_non_overlapping_and_dense"),
        *("aten::new_full", "aten::new_empty_strided", "aten::is_same_size"),
    }
)


# Views that Inductor lowers to views of the same buffer; others it runs as kernels whose result it takes
# for an unrelated tensor, so that a write through one of them may be dropped or reordered.
_LOWERED_VIEWS = frozenset(
    {
        *("aten::slice", "aten::select", "aten::view", "aten::reshape", "aten::_unsafe_view", "aten::t"),
        *("aten::permute", "aten::transpose", "aten::expand", "aten::squeeze", "aten::unsqueeze"),
        *("aten::as_strided", "aten::alias", "aten::detach", "aten::split", "aten::split_with_sizes"),
        *("aten::unbind", "aten::chunk", "aten::diagonal", "_c10d_functional::wait_tensor"),
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class OpSchema:
    """An operator's contract.

    Args:
        name: ``"aten::index_put"``, without overload.
        names: argument names, in order.
        kwarg_only: names of the keyword-only ones.
        required: names of those without a default.
        mutable: names of the arguments it writes.
        returns: for each returned value, the name of the argument it aliases, or ``None``.
        view: whether every returned tensor is a view of an argument.
        returns_operand: whether its result is its operand itself, whatever fake tensors say.
        view_or_copy: whether it copies when a view is impossible.
        meta_only: whether it never reads elements.
        makes_tensor: whether its first result is a tensor.
        write_only: mutable arguments that it overwrites whole and never reads (declared by users).
        unread: other arguments whose elements it never reads (declared by users).
        elementwise: whether it works element by element (declared by users).
        hides_accesses: whether it writes operands, or reads bytes beside them, that its schema does not name.
        hides_alias: whether it may return its operand itself although its schema does not say so.
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
    returns_operand: bool
    view_or_copy: bool
    meta_only: bool
    makes_tensor: bool
    write_only: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    elementwise: bool = False
    hides_accesses: bool = False
    hides_alias: bool = False
    views_several: bool = False
    seeded: bool = False


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


def _contract(op: Any, declared: Declaration | None) -> OpSchema:
    schema = op._schema
    name = str(schema.name)
    aliased = [a for a in schema.arguments if a.alias_info is not None and name not in _NOT_WRITING]
    mutable = tuple(a.name for a in aliased if a.alias_info.is_write)
    returns = tuple(_aliased(schema, r) for r in schema.returns)
    if name in _ALIAS_UNDECLARED:
        returns = (schema.arguments[0].name,)
    names = tuple(a.name for a in schema.arguments)
    declared = declared or Declaration(name)
    if declared.aliases:
        returns = tuple(str(a) if a is not None else None for a in map(
            dict(declared.aliases).get, range(len(returns))))  # fmt: skip
    return OpSchema(
        name=name,
        names=names,
        kwarg_only=frozenset(a.name for a in schema.arguments if a.kwarg_only),
        required=tuple(a.name for a in schema.arguments if not a.has_default_value()),
        mutable=mutable,
        returns=returns,
        view=not mutable and not declared.writes and bool(returns) and all(r is not None for r in returns),
        returns_operand=name in _RETURNS_OPERAND,
        view_or_copy=name in _VIEW_OR_COPY,
        meta_only=name in _META_ONLY,
        makes_tensor=bool(schema.returns) and str(schema.returns[0].type) == "Tensor",
        write_only=frozenset(declared.write_only),
        unread=frozenset(n for n in names if n not in mutable and not declared.reads_argument(n)),
        elementwise=declared.elementwise,
        hides_accesses=name in _REACHING,
        hides_alias=name in _MAY_RETURN_OPERAND,
        views_several=len(set(returns) - {None}) > 1,
        seeded=torch.Tag.nondeterministic_seeded in op.tags,
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


def is_lowered_view(node: Node, of_input: bool) -> bool:
    """Return whether Inductor sees a view as a view.

    Of dtype views only those of the same width and of inputs: a computed tensor has no memory yet that
    another dtype could look at.
    """
    if schema_of(node.target).name not in _LOWERED_VIEWS:
        return False
    if node.target is not torch.ops.aten.view.dtype:
        return True
    if not of_input:
        return False
    source: torch.Tensor = node.all_input_nodes[0].meta["val"]
    return any(t.element_size() == source.element_size() for t in tensors(node.meta["val"]))


def returns_only_none(op: Any) -> bool:
    """Return whether an operator returns nothing."""
    return not op._schema.returns


def target_name(target: Any) -> str:
    """Return how reports name the target of a node."""
    if is_operator(target):
        return schema_of(target).name
    return str(getattr(target, "__name__", target))


def has_tensor(value: Any) -> bool:
    """Return whether there is a tensor in a nested value."""
    return isinstance(value, torch.Tensor) or next(tensors(value), None) is not None


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a nested value."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, LISTS):
        for item in value:
            yield from tensors(item)
