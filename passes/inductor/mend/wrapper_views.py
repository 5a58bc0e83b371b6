"""Where the views lie that a v2 wrapper makes of its bases, counted from where each base begins.

``auto_functionalized_v2`` names a view of a base by numbers of the tensors that AOTAutograd traced with. An
offset counts from the start of the storage, and torch computes the ``start`` of a slice from there as well:
for a base that begins inside its storage (an input that is itself a view) that is another slice. Where a base
begins is told by its fake value, and by that alone: of one result of a store the fake values say 0 here and
where the input begins there, as they come from a decomposition or from a cache, and Inductor makes all anew.

So the numbers are looked at twice. In the joint graph views are counted from their base, and where each base
begins is noted. Later, offsets move along with bases whose fake values begin elsewhere by then.

What the numbers of the joint graph count from they do not tell. A view that was made before a store has those
of the input that was stored into, one made after it those of the result, of which the fake values are wrong.
The program knows better (``graph/program_notes.py``). Where it was not noted, numbers and fake values are
taken to come from one run.

With symbolic sizes the wrapper names a view by ``sym_storage_offset`` of it, which Inductor lowers to the
offset of the buffer and not of the view. It is written as a sum of products of sizes instead.
"""

from __future__ import annotations

import operator
from typing import Any

import sympy
import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from ... import _torch
from ...graph.alias import begin_of, chain
from ...graph.program_notes import place
from ...graph.sizes import Named, computed, note, written_out
from ...memory._torch import floor_division, greater
from ...memory.region import Size, as_size
from ...ops.schema import is_operator, tensors
from ...ops.wrapper import BaseView, base_views, number
from .._torch import slices_count_from_storage
from ..defects import defended

aten: Any = torch.ops.aten
_BEGINS = "reinplace_begins"  # where the bases of a wrapper began that its offsets are counted with


def count_from_bases(graph: Graph) -> int:
    """Count the views of wrappers in a joint graph from their bases; returns how many numbers are others."""
    changed, named = 0, Named()
    for node in list(graph.nodes):
        if node.target is aten.sym_storage_offset.default and defended("offset-of-a-view"):
            if _write_out(node, named):
                changed += 1
                continue
        elif _is_v2(node) and _BEGINS not in node.meta:
            bases: Any = node.kwargs["_all_bases"]
            for view in base_views(node):
                if view.form != "base":
                    changed += _count(node, view, bases[view.base], named)
            node.meta[_BEGINS] = [begin_of(base) for base in bases]
        note(named, node)
    return changed


def move_with_bases(graph: Graph) -> int:
    """Move offsets of wrappers along with bases that began elsewhere before; returns how many moved."""
    moved, named = 0, Named()
    for node in list(graph.nodes):
        if _BEGINS in node.meta and _is_v2(node) and defended("offset-after-a-store"):
            moved += _move(node, named)
        note(named, node)
    return moved


def _is_v2(node: Node) -> bool:
    is_wrapper = node.op == "call_function" and node.target is _torch.hop("auto_functionalized_v2")
    return is_wrapper and is_operator(node.args[0])


def _write_out(node: Node, named: Named) -> bool:
    """Write the storage offset of a view in terms of the sizes that the graph is given, if they say it."""
    offset = _where_filled(as_size(node.meta["val"]), node.args[0])  # type: ignore[arg-type]
    value = written_out(node, offset, named)
    if value is None:
        return False

    def swap(n: Node) -> Any:
        return value if n is node else n

    for user in list(node.users):
        user.args, user.kwargs = map_arg((user.args, user.kwargs), swap)
    node.graph.erase_node(node)
    return True


def _where_filled(offset: Size, view: Node) -> Size:
    """Return an offset with ``n`` for ``Max(1, n)``, which strides are made of, where n is a size on the way.

    Where n is 0, nothing is there.
    """
    if isinstance(offset, int):
        return offset
    values = [value for node in chain(view) for value in tensors(node.meta["val"])]
    sizes = {as_size(n) for value in values for n in value.shape}
    larger = greater()
    return offset.xreplace({larger(1, n): n for n in sizes if not isinstance(n, int)})


def _count(node: Node, view: BaseView, base: Node, named: Named) -> bool:
    """Let a view count from where its base begins; returns whether it did not before."""
    found = place(node, view.label, base.meta["val"]) if defended("offset-before-a-store") else None
    before, strides = found or (None, ())
    if view.form == "slice":
        return defended("slices-from-storage") and _count_slice(node, view, base, named, before)
    if before is None:
        return False
    meant = [*strides, sympy.expand(begin_of(base) + before)]
    if meant == [*map(number, view.data[1]), number(view.data[-1])]:
        return False
    *steps, offset = [written_out(node, size, named) for size in meant]
    if offset is None or None in steps:
        return False
    node.kwargs = {
        **node.kwargs,
        f"_{view.key}_stride": tuple(steps),
        f"_{view.key}_storage_offset": offset,
    }
    return True


def _count_slice(node: Node, view: BaseView, base: Node, named: Named, before: Size | None) -> bool:
    """Let the bounds of a slice count from its base, of which ``before`` elements lie before it, if known."""
    dim, start, end = view.data
    begin, stride = begin_of(base), as_size(base.meta["val"].stride(dim))
    if before is not None:
        first = sympy.cancel(before / sympy.sympify(stride)) if stride != 0 else number(start)
        if first == number(start):
            return False
    elif begin == 0 or not slices_count_from_storage():
        return False
    else:
        first = _counted(number(start), begin, stride)
    bounds = {}
    for key, bound in (("start", start), ("end", end)):
        size = sympy.expand(first + number(bound) - number(start))
        value = written_out(node, size, named)
        if value is None and before is not None:
            return False
        if value is None:  # as torch itself wrote it
            moved = _quotient(node, base, dim, named)
            value = computed(node, operator.sub, bound, moved)
        bounds[f"_{view.key}_slice_{key}"] = value
    node.kwargs = {**node.kwargs, **bounds}
    return True


def _counted(start: Size, begin: Size, stride: Size) -> Size:
    """Return where a slice starts in its base, which torch takes for ``offset // stride``.

    Its offset is that of the base and a multiple of the stride, whatever the base's own is.
    """
    if all(isinstance(n, int) for n in (start, begin, stride)):
        return start - begin // stride
    division = getattr(start, "func", None)
    if division is floor_division() and start.args[1] == stride:
        return sympy.cancel((start.args[0] - begin) / stride)
    return sympy.expand(start - floor_division()(sympy.sympify(begin), sympy.sympify(stride)))


def _quotient(node: Node, base: Node, dim: int, named: Named) -> Any:
    """Return how many strides of a dimension lie before a base, by nodes that ask for both."""
    value, asked = base.meta["val"], []
    for size, target, args in (
        (value.storage_offset(), aten.sym_storage_offset.default, (base,)),
        (value.stride(dim), aten.sym_stride.int, (base, dim)),
    ):
        found = written_out(node, as_size(size), named)
        if found is None:
            with node.graph.inserting_before(node):
                found = node.graph.call_function(target, args)
            found.meta["val"] = size
        asked.append(found)
    if all(isinstance(n, int) for n in asked):
        return asked[0] // asked[1]
    return computed(node, operator.floordiv, *asked)


def _move(node: Node, named: Named) -> int:
    """Move the offsets of one wrapper."""
    before: Any = node.meta[_BEGINS]
    bases: Any = node.kwargs["_all_bases"]
    now = [begin_of(base) for base in bases]
    moved = {}
    for view in base_views(node):
        if view.form == "as_strided" and view.base is not None and now[view.base] != before[view.base]:
            size = sympy.expand(number(view.data[-1]) - before[view.base] + now[view.base])
            value = written_out(node, size, named)
            if value is None:
                raise ValueError(f"no node of the graph says where a view in {node.name} begins: {size}")
            moved[f"_{view.key}_storage_offset"] = value
    node.kwargs = {**node.kwargs, **moved}
    node.meta[_BEGINS] = now
    return len(moved)
