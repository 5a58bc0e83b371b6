"""New nodes of a rewritten graph, each with its fake value and the history of the node it replaces."""

from __future__ import annotations

import operator
from typing import Any

import sympy
import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from .. import _torch
from ..memory.geometry import Geometry
from ..memory.region import Region, Size, as_size, is_static
from ..ops.schema import schema_of
from ..ops.wrapper import BaseView, number
from .fake_view import FakeViews
from .sizes import Named, computed, fake_mode_of, given, written_out

_OF_VALUE = ("val", "tensor_meta", "eager_input_vals", "unbacked_bindings", "example_value")
# A copy of what the backward computes, in front of what the forward writes, is no part of the forward.
PART_OF_BASE = "reinplace_part_of_base"  # on what a wrapper names by an offset, and means from its base on
_NOT_INHERITED = frozenset({*_OF_VALUE, "partitioner_tag", PART_OF_BASE})
aten: Any = torch.ops.aten


class Emitter:
    """Inserts nodes before the node that is being replaced.

    Args:
        graph: the graph that is rewritten.
        lowered: whether Inductor will lower the graph.
    """

    def __init__(self, graph: Graph, *, lowered: bool = False) -> None:
        self.graph = graph
        self.fake_mode: Any = fake_mode_of(graph)  # ``None`` for a graph of real tensors
        self.lowered = lowered
        self.views: FakeViews = FakeViews(self.fake_mode)
        self._copies: set[int | None] = set()  # the storages of copies
        self._names: dict[int, str | None] = {}
        self._given: Named | None = None

    def call(self, origin: Node, target: Any, args: Any, kwargs: Any = None) -> Node:
        """Insert a call before ``origin`` and inherit its history; the value is left to the caller."""
        number = id(target)  # its graph keeps it alive; to hash an operator takes torch a microsecond
        if number not in self._names:
            self._names[number] = _torch.name_for(self.graph, target)
        with self.graph.inserting_before(origin):
            node = self.graph.create_node("call_function", target, name=self._names[number])
        # Given afterwards: what torch warns about in the arguments of new nodes takes it longer to look for
        # than all else, and these come from a graph.
        _torch.give(node, tuple(args), kwargs or {})
        meta = node.meta
        for key, value in origin.meta.items():
            if key not in _NOT_INHERITED:
                meta[key] = value
        return node

    def view(self, origin: Node, target: Any, args: Any, kwargs: Any = None) -> Node:
        """Insert a call of a view or copy operator, with its fake value."""
        node = self.call(origin, target, args, kwargs)
        quick = self._quick(node)
        if quick is not None:
            node.meta["val"] = quick
            return node
        node.meta["val"] = self._run(node)
        bindings = _torch.unbacked_bindings(self.fake_mode, node.meta["val"])
        if bindings:
            node.meta["unbacked_bindings"] = bindings
        return node

    def value(self, node: Node) -> Any:
        """Run a node on the fake values of its operands."""
        quick = self._quick(node)
        return self._run(node) if quick is None else quick

    def _run(self, node: Node) -> Any:
        args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        if node.target is aten.as_strided.default and not kwargs:
            return _torch.run_by_hints(self.fake_mode, node.target, args)
        return _torch.run_fake(self.fake_mode, node.target, args, kwargs)

    def _quick(self, node: Node) -> torch.Tensor | None:
        """Return the fake value of a view or a clone, ``None`` where the operator has to be run."""
        target, args = node.target, node.args
        first = args[0] if args else None
        if node.kwargs or not isinstance(first, Node):
            return None
        source = first.meta["val"]
        quick = self.views.value(target, (source, *args[1:]), node.meta.get("val"))
        if quick is None and target is aten.clone.default and self._keeps_strides(source):
            return self.views.like(source)
        return quick

    def _keeps_strides(self, val: Any) -> bool:
        """Return whether a clone surely has the same strides; torch changes some of single elements."""
        if not self.views.is_plain(val) or min(val.size(), default=2) < 2:
            return False
        return val.is_contiguous() or is_dense(val)

    def clone(self, origin: Node, source: Node, known: Any = None, *, is_compact: bool = False) -> Node:
        """Insert a copy of ``source`` with its strides, which kernels may rely on.

        ``aten.clone`` keeps the strides of tensors without gaps; a tensor with gaps is copied into an
        empty one of the same strides, whose gaps nobody may read.

        Args:
            origin: the node that is replaced.
            source: what is copied.
            known: the fake value of a result that the copy stands for; it becomes the copy's own where it is
                what a copy has.
            is_compact: whether it may be laid out in another way, so that gaps need no memory.
        """
        val = source.meta["val"]
        if self._keeps_strides(val):
            node = self.call(origin, aten.clone.default, (source,))
            node.meta["val"] = known if self._is_copy(known, val) else self.views.like(val)
            return node
        if is_dense(val):
            return self.view(origin, aten.clone.default, (source,))
        repeated = [d for d in range(val.dim()) if as_size(val.stride(d)) == 0 and as_size(val.size(d)) != 1]
        if repeated:
            return self._clone_expanded(origin, source, repeated)
        if is_compact:
            return self.view(origin, aten.clone.default, (source,))
        if is_static(val) and Geometry().self_overlapping(Region.of(val)):
            # copy the bytes that elements share once
            need = 1 + sum((n - 1) * s for n, s in zip(val.size(), val.stride(), strict=True))
            flat = self.view(origin, aten.as_strided.default, (source, [need], [1], val.storage_offset()))
            copied = self.view(origin, aten.clone.default, (flat,))
            shape = (copied, list(val.size()), list(val.stride()), 0)
            return self.view(origin, aten.as_strided.default, shape)
        empty = self.empty(origin, source)
        self.store(origin, empty, source)
        return empty

    def store(self, origin: Node, into: Node, source: Any) -> None:
        """Insert a copy of a value into a view, or into a fresh buffer."""
        if self.lowered:
            into = self._as_part(origin, into)
        copy = self.call(origin, aten.copy_.default, (into, source))
        copy.meta["val"] = into.meta["val"]

    def _as_part(self, origin: Node, into: Node) -> Node:
        """Return a fresh buffer, or a slice that takes all of it, as a view by its strides.

        What is copied over the whole of a fresh buffer, Inductor takes for the buffer itself: both would be
        one, without its gaps, and a kernel that writes the copy would write what it was made of. A view it
        stores into.
        """
        buffer = into.args[0] if into.target is aten.slice.Tensor else into
        if not isinstance(buffer, Node) or buffer.target is not aten.empty_strided.default:
            return into
        whole, taken = (tuple(map(as_size, node.meta["val"].shape)) for node in (buffer, into))
        if taken != whole:
            return into
        sizes, strides = buffer.args[:2]
        return self.view(origin, aten.as_strided.default, (buffer, sizes, strides, 0))

    def _is_copy(self, known: Any, val: torch.Tensor) -> bool:
        """Return whether a fake value is what copying ``val`` gives, on a storage that no other copy has."""
        if known is None or not self.views.is_plain(known) or known.storage_offset() != 0:
            return False
        if known.dtype != val.dtype or known.device != val.device:
            return False
        if known.size() != val.size() or known.stride() != val.stride():
            return False
        key = _torch.storage_key(known)
        if known.untyped_storage().nbytes() != val.numel() * val.element_size() or key in self._copies:
            return False
        self._copies.add(key)
        return key != _torch.storage_key(val)

    def empty(self, origin: Node, source: Node) -> Node:
        """Insert a buffer of the shape and strides of ``source``, with nothing in it."""
        val = source.meta["val"]
        sizes = [self.symbol(origin, source, "sym_size", i) for i in range(val.dim())]
        strides = [self.symbol(origin, source, "sym_stride", i) for i in range(val.dim())]
        if not self.views.is_plain(val):
            return self.view(origin, aten.empty_strided.default, (sizes, strides), like(val))
        node = self.call(origin, aten.empty_strided.default, (sizes, strides), like(val))
        node.meta["val"] = self.views.like(val)
        return node

    def padded(self, origin: Node, source: Node, start: int, is_copied: bool) -> Node:
        """Insert a copy of ``source``, or an empty buffer like it, that begins ``start`` elements in.

        All sizes must be static, and no two elements the same bytes.
        """
        val = source.meta["val"]
        need = start + 1 + sum((n - 1) * s for n, s in zip(val.size(), val.stride(), strict=True))
        room = self.view(origin, aten.empty_strided.default, ([need], [1]), like(val))
        shape = (room, list(val.size()), list(val.stride()), start)
        buffer = self.view(origin, aten.as_strided.default, shape)
        if is_copied:
            copy = self.call(origin, aten.copy_.default, (buffer, source))
            copy.meta["val"] = buffer.meta["val"]
        return buffer

    def _clone_expanded(self, origin: Node, source: Node, repeated: list[int]) -> Node:
        """Insert a copy of an expanded tensor: copy it once, then expand the copy."""
        sizes = [self.symbol(origin, source, "sym_size", d) for d in range(source.meta["val"].dim())]
        once = source
        for dim in repeated:
            once = self.view(origin, aten.slice.Tensor, (once, dim, 0, 1))
        return self.view(origin, aten.expand.default, (self.clone(origin, once), sizes))

    def symbol(self, origin: Node, source: Node, kind: str, dim: int) -> Any:
        """Return a size or stride of ``source``: an int, or a node that asks for it at run time."""
        val = source.meta["val"]
        value = val.size(dim) if kind == "sym_size" else val.stride(dim)
        if isinstance(as_size(value), int):
            return as_size(value)
        node = self.call(origin, getattr(aten, kind).int, (source, dim))
        node.meta["val"] = value
        return node

    def base_view(self, origin: Node, base: Node, view: BaseView, moved: Size) -> Node:
        """Insert the view of a v2 argument on ``base``, whose storage starts ``moved`` items elsewhere."""
        if view.form == "slice":
            return self.view(origin, aten.slice.Tensor, (base, *view.data))
        if view.form == "as_strided":
            size, stride, offset = view.data
            offset = self.shifted_offset(origin, size, offset, moved)
            part = self.view(origin, aten.as_strided.default, (base, list(size), list(stride), offset))
            part.meta[PART_OF_BASE] = True
            return part
        return base

    def shifted_offset(self, origin: Node, size: Any, offset: Any, by: Size) -> Any:
        """Return the offset, an int or a symbolic node, of a view into a storage that begins elsewhere now.

        One without elements may name any, and keeps it: there may be no such place before the storage.

        Raises:
            ValueError: the graph is not given what it takes to say where.
        """
        if by == 0 or 0 in size:
            return offset
        moved = sympy.expand(number(offset) + by)
        if self._given is None:
            self._given = given(self.graph)
        found = written_out(origin, moved, self._given)
        if found is None and isinstance(by, int):
            return computed(origin, operator.add, offset, by)
        if found is None:
            raise ValueError(f"no input of the graph says where {moved} is")
        return found

    def mutable_op(
        self, origin: Node, op: Any, by_name: dict[str, Any], eager: dict[str, Any] | None
    ) -> Node:
        """Insert a call of a mutable operator with arguments by name.

        Args:
            origin: the functional wrapper that is replaced.
            op: the operator.
            by_name: its arguments.
            eager: the values that eager mode would pass, by name; Inductor lays out the operator's
                operands after them.
        """
        schema = schema_of(op)
        positional = [n for n in schema.names if n not in schema.kwarg_only and n in by_name]
        if positional != [n for n in schema.names if n not in schema.kwarg_only][: len(positional)]:
            positional = []
        rest = [n for n in by_name if n not in positional]
        node = self.call(origin, op, [by_name[n] for n in positional], {n: by_name[n] for n in rest})
        if eager is not None and all(n in eager for n in by_name):
            args, kwargs = tuple(eager[n] for n in positional), {n: eager[n] for n in rest}
            node.meta["eager_input_vals"] = (args, kwargs)
        return node


def like(val: torch.Tensor) -> dict[str, Any]:
    """Return the dtype and the device of a tensor as the arguments of what makes another one."""
    return {"dtype": val.dtype, "device": val.device}


def placed_like(fake_mode: Any, val: torch.Tensor, offset: Any) -> Any:
    """Return a fake tensor laid out like another one, which begins at an offset into a storage of its own."""
    last = sum((n - 1) * step for n, step in zip(val.shape, val.stride(), strict=True))
    need = 0 if 0 in map(as_size, val.shape) else offset + 1 + last
    room = _torch.run_fake(fake_mode, aten.empty_strided.default, ((need,), (1,)), like(val))
    return _torch.run_fake(fake_mode, aten.as_strided.default, (room, val.shape, val.stride(), offset), {})


def is_dense(val: torch.Tensor) -> bool:
    """Return whether a tensor is without gaps and overlaps, so that ``clone`` keeps its strides."""
    pairs = [
        (as_size(n), as_size(s))
        for n, s in zip(val.size(), val.stride(), strict=True)
        if not (isinstance(n, int) and n == 1)
    ]
    expected: Any = 1
    while pairs:
        hit = next((p for p in pairs if p[1] == expected), None)
        if hit is None:
            return any(isinstance(n, int) and n == 0 for n, _ in pairs)
        pairs.remove(hit)
        expected = expected * hit[0]
    return True


def eager_values(origin: Node) -> dict[str, Any] | None:
    """Return the keyword arguments that eager mode would pass to a wrapper, or ``None`` if not recorded."""
    recorded = origin.meta.get("eager_input_vals")
    if not isinstance(recorded, list | tuple) or len(recorded) != 2 or not isinstance(recorded[1], dict):
        return None
    return dict(recorded[1])
