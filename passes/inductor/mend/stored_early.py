"""Values that must be in memory before a kernel overwrites what they are computed from.

Inductor computes an elementwise value where it is used. Before a kernel of its own (a ``FallbackKernel``)
writes a buffer, it puts the values that read this buffer into memory, but it has given the kernel its place
in the program by then: their computation comes after the write and sees the new bytes. (``y = x + 1; op_(x);
z.copy_(y)`` is wrong without any pass of ours.) So we ask for each such value to be in memory where it is
made, by a copy into fresh memory. Inductor makes no copy of it: it computes the value right there, which it
would have to do all the same.

So it is with a value that a kernel is given for several arguments and writes through one of them, and with
one of which it writes a view: Inductor would compute it for each of them, into memory of its own, and store
what was written into the whole afterwards.

A value that a kernel writes in other strides than row by row, and of which a view is used before: the view
takes the strides that Inductor has chosen by then, the kernel asks for its own, and from then on Inductor
finds the copy in those strides under the name of the value, through the view as well. So the value is
computed into a view of fresh memory, which has its strides from the start.

And what a scatter, or the places of an ``index_put``, are computed of where they store: in one loop they are
read after elements before them were stored. So are, of a list, values that are computed where another element
is written: a kernel computes all elements beside each other, and without one they are stored one by one.
"""

from __future__ import annotations

import bisect
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from ...graph.alias import base_of, bases, begin_of, uses, viewed, written
from ...graph.emit import Emitter, placed_like
from ...graph.sizes import shape_env_of
from ...memory._torch import data_symbols
from ...memory.geometry import Geometry
from ...memory.region import Region
from ...ops import lists
from ...ops.computed import has_code
from ...ops.nested import nodes
from ...ops.schema import argument, is_operator, schema_of
from ...ops.true_strides import has_usual_strides
from ...ops.wrapper import base_views
from ...ops.wrapper_names import calls_of
from ..defects import defended
from ..lowering import call_of, is_put_off

aten: Any = torch.ops.aten


def realize(graph: Graph) -> int:
    """Put values into memory that a later kernel would spoil; returns how many."""
    roots = bases(graph)
    writes = _writes(graph, roots)
    inlined = _inlined(graph, roots) if defended("spoiled-by-a-scatter") else {}
    several = _made_apart(graph, writes, roots) | _viewed_twice(graph) if defended("written-twice") else set()
    if not writes and not inlined and not several:
        return 0
    found = _Late(graph, roots, writes if defended("spoiled-by-a-kernel") else {}, inlined)
    if defended("spoiled-by-a-list"):
        found.note_lists(node for kernels in writes.values() for node in kernels if lists.is_list(node))
    strided = _viewed_before(graph, writes, roots) if defended("viewed-before-written") else set()
    early = several | strided
    late = [n for n in graph.nodes if found.includes(n) or (n in early and is_put_off(n, {}))]
    emitter = Emitter(graph)
    stored = {node: _store(emitter, node, in_strides=node in strided) for node in late}
    end = graph.output_node()
    if not stored.keys().isdisjoint(end.all_input_nodes):
        end.args = map_arg(end.args, lambda n: stored.get(n, n))
    return len(late)


def _writes(graph: Graph, roots: dict[Node, Node]) -> dict[Node, list[Node]]:
    """Return the kernels that write each buffer, in order.

    A list is given its place in the program where it is computed, before it is stored (on GPUs).
    """
    found: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        stored = written(node) if is_operator(node.target) else []
        if stored and (lists.is_list(node) or not has_code(node.target)):
            for root in dict.fromkeys(roots[operand] for operand in stored):
                found.setdefault(root, []).append(node)
    return found


def _made_apart(graph: Graph, writes: dict[Node, list[Node]], roots: dict[Node, Node]) -> set[Node]:
    """Return what kernels write through views, or are given for several arguments, or elements of lists.

    What is written through views and concatenated later Inductor computes in its place there.
    """
    twice, in_part = set[Node](), set[Node]()
    launches = calls_of(graph, "triton_kernel_wrapper_mutation")
    for kernel in dict.fromkeys([*(node for kernels in writes.values() for node in kernels), *launches]):
        stored, seen = {roots[n] for n in written(kernel)}, set[Node]()
        for operand in nodes((kernel.args, kernel.kwargs)):
            root = roots.get(operand, operand)
            if root in stored and root in seen:
                twice.add(root)
            elif root in stored and root is not operand and not lists.is_list(kernel):
                in_part.add(root)
            seen.add(root)
    return twice | {n for n in in_part if all(user.target is not aten.cat.default for user in n.users)}


def _viewed_twice(graph: Graph) -> set[Node]:
    """Return the bases of which wrappers that are left write several views."""
    found: set[Node] = set()
    for node in calls_of(graph, "auto_functionalized_v2"):
        given: Any = node.kwargs["_all_bases"]
        times = Counter(view.base for view in base_views(node) if view.base is not None)
        found.update(given[base] for base, count in times.items() if count > 1)
    return found


def _viewed_before(graph: Graph, writes: dict[Node, list[Node]], roots: dict[Node, Node]) -> set[Node]:
    """Return what kernels write, not row by row, and of which a view is made before."""
    order, geometry = {node: i for i, node in enumerate(graph.nodes)}, Geometry(shape_env_of(graph))
    others = [root for root in writes if _has_own_strides(root.meta["val"], geometry)]
    first = {root: order[writes[root][0]] for root in others}
    views = [node for node in order if viewed(node) is not None]
    return {roots[node] for node in views if order[node] < first.get(roots[node], 0)}


def _has_own_strides(val: torch.Tensor, geometry: Geometry) -> bool:
    if has_usual_strides(val) or data_symbols((*val.size(), *val.stride())):
        return False
    return not geometry.self_overlapping(Region.of(val))


def _inlined(graph: Graph, roots: dict[Node, Node]) -> dict[Node, set[Node]]:
    """Return what is computed in a loop that stores by an index, each with the buffers that are stored into.

    Of an ``index_put`` only the places are: what it puts Inductor itself puts into memory before, where it
    is computed from the buffer; it does not know the buffer of a diagonal or of windows, and does not care
    where all places are parts of ``randperm``, each another one: but what is put may be read at others.
    """
    found: dict[Node, set[Node]] = {}
    for node in graph.nodes:
        if node.op != "call_function" or not is_operator(node.target) or not schema_of(node.target).mutable:
            continue
        operands: list[Any] = []
        if schema_of(node.target).name.startswith("aten::scatter"):
            operands = node.all_input_nodes[1:]
        elif schema_of(node.target).name in ("aten::index_put_", "prims::_unsafe_index_put_"):
            indices = argument(node, "indices")
            operands = [i for i in indices if i is not None]
            if _is_nameless(node.args[0]) or all(map(_is_of_randperm, indices)):
                operands.append(argument(node, "values"))
        for operand in operands:
            found.setdefault(roots[operand], set()).add(roots[node.args[0]])
    return found


def _is_nameless(node: Any) -> bool:
    """Return whether Inductor writes into a view whose buffer it does not name."""
    while isinstance(node, Node) and (source := viewed(node)) is not None:
        if node.target in (aten.diagonal.default, aten.unfold.default):
            return True
        node = source
    return False


def _is_of_randperm(index: Node | None) -> bool:
    return index is not None and base_of(index).target is aten.randperm.default


class _Read(NamedTuple):
    """What a value that is not in memory reads of a buffer that is written.

    Args:
        operand: the buffer, or a view of it.
        in_turn: whether element i of the value is computed from element i of it alone.
    """

    operand: Node
    in_turn: bool


class _Part(NamedTuple):
    """Where a value is used by a list that is written in place: the list, which element, and if as it is."""

    made_by: Node
    place: int
    is_whole: bool


class _Late:
    """The values that are used after a buffer is written that they are computed from, and are not stored.

    Args:
        graph: the graph.
        roots: what every node is a view of.
        writes: the kernels that write each buffer, in order.
        inlined: what is computed in a loop that stores, with the buffers.
    """

    def __init__(
        self,
        graph: Graph,
        roots: dict[Node, Node],
        writes: dict[Node, list[Node]],
        inlined: dict[Node, set[Node]],
    ) -> None:
        self._order = {node: i for i, node in enumerate(graph.nodes)}
        self._times = {root: [self._order[n] for n in nodes] for root, nodes in writes.items()}
        self._roots = roots
        self._inlined = inlined
        self._written = self._times.keys() | {root for buffers in inlined.values() for root in buffers}
        # What a value reads of written buffers, where it is not in memory.
        self._reads: dict[Node, frozenset[_Read]] = {}
        self._stored: dict[Node, bool] = {}
        self._parts: dict[Node, list[_Part]] = {}
        self._elements: dict[tuple[Node, Node], list[tuple[int, Region]]] = {}
        self._geometry = Geometry()

    def note_lists(self, made_by: Iterator[Node]) -> None:
        """Note what lists write in place, and compute their elements from."""
        for node in dict.fromkeys(made_by):
            own: Any = node.args[0]
            for i, operand in enumerate(own):
                element = i, Region.of(operand.meta["val"])
                self._elements.setdefault((node, self._roots[operand]), []).append(element)
                for part in lists.parts(node, i):
                    root = self._roots[part]
                    self._parts.setdefault(root, []).append(_Part(node, i, part is root))

    def includes(self, node: Node) -> bool:
        """Return whether a value is one of them; asked in the order of the graph."""
        if self._roots[node] is not node:
            return False
        inputs = lists.inputs_of(node) if lists.maker(node) else call_of(node).all_input_nodes
        reads = frozenset(r for n in inputs for r in self._read_by(node, n))
        if not reads or not is_put_off(node, self._stored) or _is_stored_output(node):
            return False
        read = {self._roots[r.operand] for r in reads}
        last = max((self._order[user] for user, _ in uses(node)), default=0)
        time = self._order[call_of(node)]
        late = any(_first_after(self._times.get(root, ()), time) < last for root in read)
        late = late or not read.isdisjoint(self._inlined.get(node, ()))
        late = late or any(self._meets(part, read) for part in self._parts.get(node, ()) for read in reads)
        if not late:
            self._reads[node] = reads
        return late

    def _read_by(self, node: Node, operand: Node) -> Iterator[_Read]:
        """Yield what a value reads of written buffers, by one of its operands."""
        root = self._roots.get(operand, operand)
        if root not in self._written and root not in self._reads:
            return
        in_turn = lists.maker(node) is not None or _is_elementwise(node)
        if root in self._written:
            yield _Read(operand, in_turn)
        for read in self._reads.get(root, ()):
            yield read._replace(in_turn=in_turn and read.in_turn and operand is root)

    def _meets(self, part: _Part, read: _Read) -> bool:
        """Return whether a value, as a part of an element, reads what is written before it is computed."""
        region = Region.of(read.operand.meta["val"])
        for index, stored in self._elements.get((part.made_by, self._roots[read.operand]), ()):
            in_turn = index == part.place and part.is_whole and read.in_turn
            if not (in_turn and self._geometry.same(region, stored)):
                if self._geometry.overlap(region, stored) is not False:
                    return True
        return False


def _is_elementwise(node: Node) -> bool:
    target: Any = node.target
    return is_operator(target) and (torch.Tag.pointwise in target.tags or schema_of(target).keeps_order)


def _is_stored_output(node: Node) -> bool:
    """Return whether Inductor stores a value at once because it is returned.

    Single elements it may not, and it does not ask for strides that only data tell.
    """
    val = node.meta["val"]
    numel = val.numel()
    is_single = isinstance(numel, int) and numel <= 1
    if is_single or data_symbols((*val.size(), *val.stride())):
        return False
    return any(user.op == "output" for user in node.users)


def _first_after(times: Sequence[int], time: int) -> float:
    at = bisect.bisect_right(times, time)
    return times[at] if at < len(times) else float("inf")


def _store(emitter: Emitter, node: Node, *, in_strides: bool) -> Node:
    """Copy a value into fresh memory, which everybody but the output uses from then on; returns that.

    The output may be long: what it returns is exchanged once for all values.
    Of empty memory that is copied into as a whole Inductor keeps nothing, and so not its strides either. One
    of several results is taken out where they are computed: a write may come before it is taken.
    """
    if node.target is operator.getitem:
        node.all_input_nodes[0].append(node)
    following, before = node.next, {user for user in node.users if user.op != "output"}
    fresh = into = emitter.empty(following, node)
    if in_strides:
        into = emitter.view(following, aten.as_strided.default, (fresh, *fresh.args[:2], 0))
    _begin_with(emitter, node, [fresh, into])
    copy = emitter.call(following, aten.copy_.default, (into, node))
    copy.meta["val"] = into.meta["val"]
    stored = into if in_strides else copy
    node.replace_all_uses_with(stored, delete_user_cb=before.__contains__)
    return stored


def _begin_with(emitter: Emitter, node: Node, stored: list[Node]) -> None:
    """Let fresh memory begin where a value does: the graph counts offsets into it from there."""
    begin = begin_of(node)
    for value in stored if begin != 0 else ():
        offset = node.meta["val"].storage_offset()
        value.meta["val"] = placed_like(emitter.fake_mode, value.meta["val"], offset)
