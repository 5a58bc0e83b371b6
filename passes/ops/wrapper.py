"""The wrappers that functionalization puts around mutable operators, read once and in one form.

``auto_functionalized`` (v1) passes the mutated tensors by name; v2 passes their bases and, per argument,
how its view is made from the base (see ``write_view_information_to_args`` in torch).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from .. import _torch
from ..memory.geometry import Geometry
from ..memory.region import Region, Size, as_size
from .schema import OpSchema, schema_of, target_name
from .wrapper_names import wraps_operator


class BaseView(NamedTuple):
    """How one mutated argument of a v2 wrapper is made from its base.

    Attributes:
        name: the argument.
        item: the element of a list argument, else ``None``.
        base: the number of the base, ``None`` when the argument is ``None``.
        form: ``"base"``, ``"slice"`` (data: dim, start, end) or ``"as_strided"`` (size, stride, offset).
        data: the numbers; ints or nodes.
    """

    name: str
    item: int | None
    base: int | None
    form: str = "base"
    data: tuple[Any, ...] = ()

    @property
    def label(self) -> str:
        """The argument as labels name it."""
        return self.name if self.item is None else f"{self.name}[{self.item}]"

    @property
    def key(self) -> str:
        """The argument as the wrapper's keywords name it."""
        return self.name if self.item is None else f"{self.name}_{self.item}"

    @classmethod
    def of(cls, kwargs: Any, prefix: str, name: str, item: int | None) -> BaseView:
        """Read the view of one argument from the wrapper's keyword arguments."""
        index, alias, strided, sliced = view_keys(prefix)
        base = kwargs[index]
        if base is None or alias in kwargs:
            return cls(name, item, base)
        if strided[-1] in kwargs:
            return cls(name, item, base, "as_strided", tuple([kwargs[key] for key in strided]))
        if sliced[0] in kwargs:
            return cls(name, item, base, "slice", tuple([kwargs[key] for key in sliced]))
        return cls(name, item, base)

    def region(self, base: Region, shift: Size) -> Region:
        """Return the bytes of the view, given its base's region and the shift of the base's storage."""
        if self.form == "slice":
            dim, *bounds = (number(n) for n in self.data)
            size = base.sizes[dim]
            start, end = (_bound(n, size) for n in bounds)
            sizes = (*base.sizes[:dim], end - start, *base.sizes[dim + 1 :])
            return base._replace(offset=base.offset + start * base.strides[dim], sizes=sizes)
        if self.form == "as_strided":
            sizes, strides, offset = self.data
            return Region(
                number(offset) * base.itemsize + shift,
                tuple(map(number, sizes)),
                tuple(number(s) * base.itemsize for s in strides),
                base.itemsize,
            )
        return base


def _bound(bound: Size, size: Size) -> Size:
    """Return where a slice begins or ends, counted from the beginning and not beyond the end."""
    if not isinstance(bound, int):
        return bound
    if bound < 0:
        bound = bound + size
    return max(0, min(bound, size)) if isinstance(bound, int) and isinstance(size, int) else bound


@functools.lru_cache(maxsize=1024)
def view_keys(prefix: str) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
    """Return the keywords of one argument's view: its base, that it is the base, by strides, as a slice."""
    strided = tuple(f"{prefix}_{key}" for key in ("size", "stride", "storage_offset"))
    sliced = tuple(f"{prefix}_slice_{key}" for key in ("dim", "start", "end"))
    return f"{prefix}_base_index", f"{prefix}_alias", strided, sliced


def called(node: Node) -> str:
    """Return how reports name what a node calls: of a wrapper its operator, of a launch its kernel."""
    op = wrapped(node)
    launches = "triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation"
    if op is None and any(node.target is _torch.hop(name) for name in launches):
        return _torch.triton_kernel_name(node.kwargs["kernel_idx"])  # type: ignore[arg-type]
    return target_name(op or node.target)


def wrapped(node: Node) -> Any:
    """Return the operator that a wrapper wraps; ``None`` for any other node."""
    return node.args[0] if wraps_operator(node.target) and node.args else None


def number(value: Any) -> Size:
    """Return an argument that is an int, a ``SymInt`` or a node of one, as a size."""
    value = value.meta["val"] if isinstance(value, Node) else value
    if not isinstance(value, int | torch.SymInt):
        raise TypeError(f"expected a number, got {value!r}")
    return as_size(value)


def base_views(node: Node) -> list[BaseView]:
    """Return the mutated arguments of a v2 wrapper, in schema order."""
    kwargs = node.kwargs
    views: list[BaseView] = []
    for name in schema_of(node.args[0]).mutable:
        if f"_{name}_length" in kwargs:
            for i in range(kwargs[f"_{name}_length"] or 0):  # type: ignore[arg-type]
                views.append(BaseView.of(kwargs, f"_{name}_{i}", name, i))
        elif f"_{name}_base_index" in kwargs:
            views.append(BaseView.of(kwargs, f"_{name}", name, None))
    return views


def mutated_args(node: Node) -> Iterator[tuple[str, int | None, Node]]:
    """Yield ``(argument, element or None, node)`` of each mutated tensor of a v1 wrapper."""
    for name in schema_of(node.args[0]).mutable:
        value = node.kwargs.get(name)
        if isinstance(value, Node):
            yield name, None, value
        elif isinstance(value, list | tuple):
            for i, item in enumerate(value):
                if isinstance(item, Node):
                    yield name, i, item


def operands(node: Node) -> dict[str, Any]:
    """Return what a wrapper clones, by the labels of its arguments; a shared base stands with the first."""
    bases: Any = node.kwargs.get("_all_bases")
    if not wraps_operator(node.target):
        launched: Any = node.kwargs
        return {name: launched["kwargs"][name] for name in launched["tensors_to_clone"]}
    if bases is None:
        mutated = mutated_args(node)
        return {name if item is None else f"{name}[{item}]": value for name, item, value in mutated}
    views, seen = [v for v in base_views(node) if v.base is not None], set[int]()
    found: dict[str, Any] = {}
    for view in views:
        found[view.label] = None if view.base in seen else bases[view.base]
        seen.add(view.base)  # type: ignore[arg-type]
    return found


def read_args(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield ``(argument, value)`` of what a wrapper's operator only reads."""
    schema: OpSchema = schema_of(node.args[0])
    for name in schema.names:
        if name not in schema.mutable and name not in schema.unread and name in node.kwargs:
            yield name, node.kwargs[name]


def write_only(
    geometry: Geometry, op: Any, names: list[str], operand: Region, written: Sequence[Region]
) -> tuple[bool, Region | None]:
    """Return whether a wrapper's operator overwrites bytes of an operand without reading any of it.

    Args:
        geometry: of the graph.
        op: the operator.
        names: the arguments that lie in the operand.
        operand: the operand, for v2 the base.
        written: the bytes that these arguments are.

    Returns:
        Whether it reads nothing, and the bytes that it overwrites when these are not the whole operand.
    """
    known = schema_of(op).write_only
    if len(names) != 1 or names[0] not in known or geometry.self_overlapping(written[0]):
        return False, None
    return True, None if geometry.contains(written[0], operand) else written[0]


def first_result(node: Node) -> int:
    """Return the position of the first mutated tensor in the wrapper's result."""
    return max(1, len(schema_of(node.args[0]).returns))
