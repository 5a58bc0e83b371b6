"""Whether a wrapper of a mutable operator is one: what it passes fits the operator, and its results too."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node

from .. import _torch
from ..errors import GraphError
from ..memory.region import Region
from .schema import OpSchema, schema_of
from .wording import at, no_value
from .wrapper import BaseView, base_views, view_keys

_LISTS = ("_size", "_stride")


def check(node: Node) -> None:
    """Check an ``auto_functionalized`` wrapper (v1 or v2) of an operator with a schema.

    Raises:
        GraphError: naming the node, and what does not fit.
    """
    schema = schema_of(node.args[0])
    is_v2 = node.target is _torch.hop("auto_functionalized_v2")
    if len(node.args) != 1:
        raise _wrong(node, "one positional argument, the operator", f"{len(node.args)}")
    _check_arguments(node, schema, is_v2=is_v2)
    count = _check_bases(node, schema) if is_v2 else _check_mutated(node, schema)
    value = node.meta.get("val")
    if value is None:
        raise no_value(node)
    expected = max(1, len(schema.returns)) + count
    if not isinstance(value, list | tuple) or len(value) != expected:
        got = f"{len(value)}" if isinstance(value, list | tuple) else type(value).__name__
        raise _wrong(node, f'{expected} results in meta["val"]', got)


def is_taken_apart(node: Node) -> bool:
    """Return whether a wrapper's results are only taken out one by one, by their positions."""
    count = len(node.meta["val"])
    for user in node.users:
        args = user.args
        if user.target is not operator.getitem or len(args) != 2:
            return False
        if type(args[1]) is not int or not 0 <= args[1] < count:
            return False
    return True


def hands_back_operands(node: Node) -> bool:
    """Return whether the results of a wrapper's operator are fresh, or the tensors that it wrote.

    An in-place operator (``torch.Tag.inplace``) returns the operand: the wrapper's result for it shares
    storage with the new argument (v1), or base (v2).
    """
    schema, value = schema_of(node.args[0]), node.meta["val"]
    if not any(schema.returns):
        return True
    views = {name: BaseView(name, None, i) for i, name in enumerate(schema.mutable)}
    if node.target is _torch.hop("auto_functionalized_v2"):
        views = {v.name: v for v in base_views(node)}
    for made, name in zip(value, schema.returns, strict=False):
        if name is None:
            continue
        view = views.get(name)
        if view is None or view.base is None or view.item is not None or not isinstance(made, torch.Tensor):
            return False
        base = value[max(1, len(schema.returns)) + view.base]
        if not isinstance(base, torch.Tensor) or _torch.storage_key(made) != _torch.storage_key(base):
            return False
        if view.region(Region.of(base), 0) != Region.of(made):
            return False
    return True


def _wrong(node: Node, expected: str, got: str) -> GraphError:
    return GraphError(f"expected {expected}, got {got}, in {at(node)} of {node.args[0]}")


def _check_arguments(node: Node, schema: OpSchema, *, is_v2: bool) -> None:
    """Check that every argument that the operator needs is there, and no unknown one."""
    kwargs = node.kwargs
    for name in schema.required:
        if name not in kwargs and not (is_v2 and name in schema.mutable):
            raise _wrong(node, f"the argument {name!r}", "none")
    for name in () if is_v2 else kwargs:
        if name not in schema.names:
            raise _wrong(node, f"arguments {', '.join(schema.names)}", repr(name))


def _check_mutated(node: Node, schema: OpSchema) -> int:
    for name in schema.mutable:
        value = node.kwargs.get(name)
        items = value if isinstance(value, list | tuple) else [value]
        for item in items:
            if item is not None and not _is_tensor(item):
                raise _wrong(node, f"a tensor for {name!r}", repr(item))
    return len(schema.mutable)


def _check_bases(node: Node, schema: OpSchema) -> int:
    bases = node.kwargs.get("_all_bases")
    if not isinstance(bases, list | tuple) or not all(map(_is_tensor, bases)):
        raise _wrong(node, "a list of tensors as _all_bases", repr(bases))
    for name in schema.mutable:
        length = node.kwargs.get(f"_{name}_length", 0)
        if f"_{name}_length" not in node.kwargs:
            _check_base(node, f"_{name}", len(bases))
        elif length is not None and (type(length) is not int or length < 0):
            raise _wrong(node, f"a number as _{name}_length", repr(length))
        else:
            for i in range(length or 0):
                _check_base(node, f"_{name}_{i}", len(bases))
    return len(bases)


def _check_base(node: Node, prefix: str, count: int) -> None:
    """Check how one argument is made from its base."""
    kwargs: Any = node.kwargs
    index = kwargs.get(f"{prefix}_base_index", "none")
    if index is None:
        return
    if type(index) is not int or not 0 <= index < count:
        raise _wrong(node, f"a number below {count} as {prefix}_base_index", repr(index))
    for keys in view_keys(prefix)[2:]:
        missing = [name for name in keys if name not in kwargs]
        if len(missing) == len(keys):
            continue
        if missing:
            raise _wrong(node, f"the argument {missing[0]}", "none")
        for name in keys:
            value = kwargs[name]
            if type(value) is int:  # as most are
                continue
            items = value if name.endswith(_LISTS) and isinstance(value, list | tuple) else [value]
            if not all(map(_is_number, items)):
                raise _wrong(node, f"numbers as {name}", repr(value))
    dim = kwargs.get(f"{prefix}_slice_dim", "none")
    if dim != "none" and (
        type(dim) is not int or not 0 <= dim < kwargs["_all_bases"][index].meta["val"].dim()
    ):
        raise _wrong(node, f"a dimension of the base as {prefix}_slice_dim", repr(dim))


def _is_number(value: Any) -> bool:
    number = value.meta.get("val") if isinstance(value, Node) else value
    return type(number) is int or isinstance(number, torch.SymInt)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.meta.get("val"), torch.Tensor)
