"""Offsets of ``as_strided`` into inputs and copies, counted from where Inductor counts them.

An offset names an element of the storage. A value that Inductor computes begins where its buffer does; the
graph counts in it as in the memory that it takes the place of. An input that does not begin where its storage
does Inductor gets by a pointer to its first element, and may count from there. Where the running torch counts
from is tried out once.
"""

from __future__ import annotations

import functools
import logging
import operator
from typing import Any

import sympy
import torch
from torch.fx import Graph, GraphModule, Node

from ... import _torch
from ...graph.alias import bases, begin_of, behind_views, chain
from ...graph.emit import PART_OF_BASE, Emitter, is_dense, like
from ...graph.sizes import given, written_out
from ...memory.region import as_size
from ...ops.schema import argument
from ...ops.true_strides import has_usual_strides
from ...ops.wrapper import number
from ...ops.wrapper_names import is_wrapper
from .._torch import lowered_graph
from ..defects import defended
from ..lowering import is_put_off

aten: Any = torch.ops.aten
log: logging.Logger = logging.getLogger(__name__)


class _Offsets:
    """Where the values of a graph begin in memory, as Inductor counts."""

    def __init__(self, graph: Graph) -> None:
        self.base_of = bases(graph)
        self.with_gaps = set[Node]()  # the values in whose memory there is something between the elements
        self._named = given(graph)
        self.from_inputs: bool = counts_from_inputs() and defended("offsets-from-input")
        self._in_copies = defended("offset-in-a-copy")

    def begin(self, node: Node) -> Any:
        """Return the offset of the element that Inductor counts as the first of a value's buffer."""
        base = self.base_of[node]
        if _is_of_wrapper(base):
            return 0  # what a wrapper clones begins where it did in its storage
        counted = self.from_inputs if base.op == "placeholder" else self._in_copies
        return begin_of(base) if counted else 0

    def relative(self, node: Node, source: Node, meant: Any) -> Any:
        """Return an offset into the buffer of ``source``, as ``written``."""
        return self.written(node, meant - self.begin(source))

    def written(self, node: Node, offset: Any) -> Any:
        """Return an offset as an int or a node before ``node``; ``None`` if it has no name or is negative."""
        found = written_out(node, sympy.expand(offset), self._named)
        return None if isinstance(found, int) and found < 0 else found

    def sizes(self, node: Node, sizes: Any) -> list[Any] | None:
        """Return sizes as ints, or as nodes before ``node``; ``None`` where one has no name."""
        found = [written_out(node, as_size(size), self._named) for size in sizes]
        return None if any(size is None for size in found) else found


def rebase(graph: Graph) -> int:
    """Count offsets of ``as_strided`` as Inductor will; returns how many are others now.

    What is computed where it is used has no memory. Inductor puts the operand of ``as_strided`` into memory,
    of a view its elements alone: the value that is viewed becomes the operand.
    """
    strided = graph.find_nodes(op="call_function", target=aten.as_strided.default)
    if not strided:
        return 0
    offsets, emitter, count, stored = _Offsets(graph), Emitter(graph), 0, dict[Node, bool]()
    of_values, viewed = defended("strides-of-a-view"), set[Node]()
    for node in strided:
        operand: Any = node.args[0]
        base, offset = offsets.base_of[node], argument(node, "storage_offset")
        if _is_apart(node.meta["val"], base.meta["val"], is_seen_through=offsets.from_inputs):
            count += PART_OF_BASE in node.meta and _begin_at_operand(offsets, emitter, node)
            continue
        is_view = operand is not base
        is_elsewhere = of_values and is_view and behind_views(operand) is base and is_put_off(base, stored)
        # Without an offset it begins where its operand does: lost, if that is a view of what is in memory.
        is_lost = offsets.from_inputs and is_view if offset is None else offsets.begin(node) != 0
        relative = offsets.relative(node, node, begin_of(node) if offset is None else number(offset))
        viewed.add(base)
        if relative is None or not (is_lost or is_elsewhere):
            continue
        place = base if is_elsewhere else operand
        node.args = (place, argument(node, "size"), argument(node, "stride"), relative)
        node.kwargs = {}
        count += 1
    for base in viewed:
        _lay_out_as_told(base)
    return count


def _lay_out_as_told(node: Node) -> None:
    """Have a value with gaps laid out by its strides: as a view, Inductor would leave the gaps out."""
    val = node.meta["val"]
    if node.op != "call_function" or is_dense(val) or not defended("gaps-of-a-scatter"):
        return
    with _torch.fake_mode_of([val]):
        whole = torch.empty(0, **like(val))
        node.meta["val"] = whole.set_(val.untyped_storage(), val.storage_offset(), val.shape, val.stride())


def _begin_at_operand(offsets: _Offsets, emitter: Emitter, node: Node) -> bool:
    """Count the offset of a wrapper's view, which torch's own kernel makes, from where its base begins.

    A later call may be given an input that begins elsewhere: no guard asks where. What such kernels compute
    of it begins where it does, too. What the program itself names by an offset lies there in every call.
    """
    offset = argument(node, "storage_offset")
    if offset is None or not defended("offset-of-a-called-view"):
        return False
    operand: Any = node.args[0]
    buffer = _made_by_kernel(operand)
    between = number(offset) - begin_of(buffer or operand)
    begin, end = offsets.written(node, between), offsets.written(node, between + 1)
    if begin is None or end is None:
        return False
    if buffer is not None:  # torch 2.11 would lose where a slice of it begins
        node.args, node.kwargs = (operand, argument(node, "size"), argument(node, "stride"), begin), {}
        return True
    if begin != 0:  # by rows without elements, of which no place is outside the storage
        rows = emitter.view(node, aten.as_strided.default, (operand, [end, 0], [1, 1]))
        operand = emitter.view(node, aten.slice.Tensor, (rows, 0, begin, end))
    node.args, node.kwargs = (operand, argument(node, "size"), argument(node, "stride")), {}
    return True


def _made_by_kernel(operand: Node) -> Node | None:
    """Return the buffer of items of another size, made by a kernel, of which Inductor views parts."""
    for node in chain(operand):
        if node.target is aten.view.dtype:
            view, viewed = node.meta["val"], node.all_input_nodes[0].meta["val"]
            is_other = view.itemsize != viewed.itemsize and not (view.is_complex() or viewed.is_complex())
            return node if is_other else None
    return None


def _is_of_wrapper(node: Node) -> bool:
    made_by: Any = node.args[0] if node.target is operator.getitem else None
    return made_by is not None and is_wrapper(made_by.target)


def _is_apart(view: torch.Tensor, base: torch.Tensor, *, is_seen_through: bool) -> bool:
    """Return whether a view is a buffer of its own to Inductor, or its kernel is called.

    A torch that counts from inputs sees through views of another dtype (of elements of one size).
    """
    is_other = view.dtype != base.dtype and not (is_seen_through and view.itemsize == base.itemsize)
    return is_other or view.is_complex() or base.is_complex()


def put_into_copies(graph: Graph) -> int:
    """Put what ``as_strided_scatter`` puts where it belongs in Inductor's copy; returns how many are others.

    Inductor copies the elements of a value in a row, and counts in that. Of a value that has gaps, or other
    strides, the memory is copied, as it lies. Complex numbers are put by torch's own kernel, which does that
    by itself, and keeps where the value begins.
    """
    scatters = graph.find_nodes(op="call_function", target=aten.as_strided_scatter.default)
    if not scatters or not defended("offset-in-a-copy"):
        return 0
    offsets, emitter, count = _Offsets(graph), Emitter(graph), 0
    for node in scatters:
        source: Any = node.args[0]
        offset = argument(node, "storage_offset")
        begin = begin_of(source)
        if source.meta["val"].is_complex():
            continue
        place = 0 if offset is None else offsets.written(node, number(offset) - begin)
        has_gaps = not has_usual_strides(source.meta["val"])
        if place is None or not (has_gaps or (offset is not None and begin != 0)):
            continue
        args = (argument(node, "src"), argument(node, "size"), argument(node, "stride"), place)
        if not has_gaps:
            node.args, node.kwargs = (source, *args), {}
            count += 1
        elif _in_memory(offsets, emitter, node, args):
            graph.erase_node(node)
            count += 1
    return count


def _in_memory(offsets: _Offsets, emitter: Emitter, node: Node, args: tuple[Any, ...]) -> bool:
    """Replace a scatter by one into a copy of its operand's memory; returns whether that has names here."""
    source: Any = node.args[0]
    val = source.meta["val"]
    size, stride = offsets.sizes(node, val.shape), offsets.sizes(node, val.stride())
    last = sum(as_size((n - 1) * step) for n, step in zip(val.shape, val.stride(), strict=True))
    extent = offsets.written(node, last + 1)
    base = offsets.base_of[source]
    begin = offsets.relative(node, source, begin_of(source))
    if any(found is None for found in (size, stride, extent, begin)) or 0 in val.shape:
        return False
    if base.op == "placeholder" or base in offsets.with_gaps:
        memory = emitter.view(node, aten.as_strided.default, (base, [extent], [1], begin))
    else:  # what is computed may have been put into memory without the gaps
        memory = emitter.view(node, aten.empty.memory_format, ([extent],), like(val))
        memory = emitter.view(node, aten.as_strided_scatter.default, (memory, source, size, stride, 0))
    copy = emitter.view(node, aten.as_strided_scatter.default, (memory, *args))
    result = emitter.view(node, aten.as_strided.default, (copy, size, stride, 0))
    result.meta["val"] = node.meta["val"]  # what comes after counts from where the old value lies
    offsets.base_of[result] = result
    offsets.with_gaps.add(result)
    node.replace_all_uses_with(result)
    return True


@functools.cache
def counts_from_inputs() -> bool:
    """Return whether Inductor counts an offset from where an input begins."""
    graph, mode = Graph(), _torch.new_fake_mode()
    with mode:
        given = torch.empty(8)[2:]
        named = torch.as_strided(given, [2], [1], 4)
    node = graph.placeholder("given")
    view = graph.call_function(aten.as_strided.default, (node, [2], [1], 4))
    graph.output((view,))
    node.meta["val"], view.meta["val"] = given, named
    try:
        lowered = lowered_graph(GraphModule(torch.nn.Module(), graph), mode, given)
        return bool(lowered.get_layout().offset == 4)
    except Exception as error:  # noqa: BLE001  (it works by another way then, and newer ones count right)
        log.debug("where Inductor counts offsets from could not be tried out: %s", error)
        return False
