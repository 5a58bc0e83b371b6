"""Whether two scheduled operations may share a kernel, by what they really read and write.

A kernel runs its operations turn by turn of its loops, and the elements of a list beside each other. So of
two operations of which one overwrites what the other one reads, or writes,

* in one loop both must touch each element in the same turn, or no element both;
* in two elements of a list they must touch no element both.

Inductor compares what one makes and the other reads. What one reads and the other overwrites it compares the
first time only that a buffer is written: the next time, before torch 2.15, the reader knows the buffer by the
name that the first write gave it, and is taken to read something else (``fusable_weak_dep``). And it never
looks at the other elements of a list.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import sympy

from ...memory.geometry import Geometry
from ...memory.region import Region, Size, as_size
from . import _torch


class Access(NamedTuple):
    """What one operation reads or writes.

    Args:
        dep: the elements, and the name of the buffer as of the last write before.
        is_write: whether they are written.
        element: which element of a list computes it; ``None`` outside of lists.
    """

    dep: Any
    is_write: bool
    element: int | None


class Races:
    """Compares the operations of one graph.

    Args:
        node: one of its operations, once Inductor has given each write of a buffer a name.
    """

    def __init__(self, node: Any) -> None:
        self._written = _torch.written_names(node)  # a name that a write gave -> the buffer
        self._buffers = _torch.buffers(node)
        self._geometry = Geometry(_torch.shape_env())

    def between(self, one: Any, two: Any) -> str | None:
        """Return a buffer that two operations, or fused ones, would race for in one kernel."""
        lists = sum(_torch.elements(node) is not None for node in (one, two))
        if not lists and not any(w.name in self._written for n in (one, two) for w in _torch.writes(n)):
            return None
        mine, others = self.accesses(one), self.accesses(two)
        met = set[int | None]()
        for buffer in mine.keys() & others.keys():
            for a, b in itertools.product(mine[buffer], others[buffer]):
                if not (a.is_write or b.is_write) or a.element == b.element is not None:
                    continue  # of one element each, they are asked about by themselves
                if lists and not self._apart(a.dep, b.dep):
                    met.update({a.element, b.element} - {None})
                    if lists == 2 or len(met) == 2:
                        return str(buffer)
                elif not lists and self._clash(a, b):
                    return str(buffer)
        return None

    def within(self, node: Any) -> str | None:
        """Return a buffer that the operations of one kernel, or one of them with itself, race for.

        What a called kernel does with what it is given is its own affair.
        """
        if _torch.is_extern(node):
            return None
        for buffer, accesses in self.accesses(node).items():
            if not any(a.is_write for a in accesses):
                continue
            for a, b in itertools.combinations(accesses, 2):
                if a.element == b.element:
                    is_race = self._clash(a, b)
                else:
                    is_race = (a.is_write or b.is_write) and not self._apart(a.dep, b.dep)
                if is_race:
                    return buffer
        return None

    def buffer(self, name: str) -> str:
        """Return the buffer that a name stands for, as of some write."""
        return str(self._written.get(name, name))

    def meet(self, a: Any, b: Any, home: str) -> bool:
        """Return whether two dependencies on one buffer, or on parts of it, may touch an element both."""
        return not (self._apart(a, b) or self.are_apart(a.name, b.name, home))

    def accesses(self, node: Any) -> dict[str, list[Access]]:
        """Return what an operation, or each of several, reads and writes of each buffer."""
        found: dict[str, list[Access]] = defaultdict(list)
        for element, part in _parts(node):
            writes = _torch.writes(part)
            own = {self._written[w.name] for w in writes if w.name in self._written}
            for dep in itertools.chain(_torch.reads(part), writes):
                is_write = dep in writes
                # A write waits for the one before as if it read the buffer.
                is_wait = not is_write and _torch.is_whole(dep) and self.buffer(dep.name) in own
                for buffer in () if is_wait or _torch.is_order_only(dep) else self.lies_in(dep.name):
                    found[buffer].append(Access(dep, is_write, element))
        return found

    def lies_in(self, name: str) -> set[str]:
        """Return the buffers in whose memory a buffer may lie: its own, or those that it is a view of."""
        name = self._written.get(name, name)
        above = _torch.viewed(self._buffers[name]) if name in self._buffers else ()
        return {buffer for n in above for buffer in self.lies_in(n)} or {name}

    def are_apart(self, one: str, other: str, home: str) -> bool:
        """Return whether two buffers are parts of a third, as what is concatenated, and share no element."""
        regions = [self._part(name, home) for name in (one, other)]
        return None not in regions and self._geometry.overlap(*regions) is False  # type: ignore[arg-type]

    def _part(self, name: str, home: str) -> Region | None:
        buffer = self._buffers.get(self.buffer(name))
        found = None if buffer is None or [*_torch.viewed(buffer)] != [home] else _torch.part(buffer)
        if found is None or self.lies_in(home) != {home}:
            return None
        first, sizes, strides = found
        return Region(as_size(first), tuple(map(as_size, sizes)), tuple(map(as_size, strides)), 1)

    def is_made(self, name: str) -> bool:
        """Return whether a buffer is made by an operation, and no input."""
        return name in self._buffers

    def is_filled_by_others(self, name: str) -> bool:
        """Return whether the operation that makes a buffer leaves it to others to fill it."""
        return _torch.does_nothing(_torch.maker(self._buffers[name]))

    def touched(self, node: Any) -> set[str]:
        """Return the buffers in which an operation, or each of several, makes, reads or writes something."""
        deps = itertools.chain(_torch.reads(node), _torch.writes(node))
        names = [d.name for d in deps if not _torch.is_order_only(d)]
        names.extend(map(_torch.name, _torch.outputs(node)))
        return {home for name in names for home in self.lies_in(name)}

    def _clash(self, a: Access, b: Access) -> bool:
        """Return whether, in one loop, one overwrites at another time what the other one touches."""
        if a.dep.name == b.dep.name or not any(x.is_write and x.dep.name in self._written for x in (a, b)):
            return False
        if a.is_write and b.is_write and a.dep.mode == b.dep.mode is not None:
            return False  # both add, say, at once
        return not (self._in_turn(a, b) or self._apart(a.dep, b.dep))

    def _in_turn(self, a: Access, b: Access) -> bool:
        """Return whether both touch each element in one turn, and in no other one."""
        if not (self._are_known(a.dep, b.dep) and all(_once(x.dep) for x in (a, b) if x.is_write)):
            return False
        return in_turn(a.dep, b.dep)

    def _apart(self, a: Any, b: Any) -> bool:
        """Return whether two touch no element both."""
        home = self.buffer(a.name)
        if home != self.buffer(b.name) or not (_torch.names_elements(a) and _torch.names_elements(b)):
            return False
        one, other = _region(a, home), _region(b, home)
        return one is not None and other is not None and self._geometry.overlap(one, other) is False

    def _are_known(self, a: Any, b: Any) -> bool:
        """Return whether it is known which elements of one buffer two touch."""
        return self.buffer(a.name) == self.buffer(b.name) and _torch.is_known(a) and _torch.is_known(b)


def _parts(node: Any) -> Iterator[tuple[int | None, Any]]:
    """Yield the operations of a node, each with the element of a list that it belongs to."""
    elements = _torch.elements(node)
    if elements is None:
        yield from ((None, part) for part in _torch.operations(node))
        return
    for element, of_element in enumerate(elements):
        yield from ((element, part) for part in _torch.operations(of_element))


def in_turn(a: Any, b: Any) -> bool:
    """Return whether two dependencies, of buffers laid out alike, name the same element in each turn."""
    if not (_torch.is_known(a) and _torch.is_known(b)):
        return False
    return _is_same(a, b) or _is_same(a.normalize(), b.normalize())


def _is_same(a: Any, b: Any) -> bool:
    return bool(a.index == b.index and a.size == b.size)


def _once(dep: Any) -> bool:
    """Return whether each turn touches an element of its own."""
    return bool(set(dep.var_names) <= dep.index.free_symbols)


def _region(dep: Any, buffer: str) -> Region | None:
    """Return the elements that a dependency may name, as bytes; ``None`` where they are not strided.

    A number that is read may be any for which the element is one of the buffer.
    """
    read = _torch.told_by_data(dep)
    found = _torch.affine(dep, *read)
    if found is None:
        return None
    first, strides = as_size(found[0]), [as_size(s) for s in found[1]]
    sizes = [as_size(n) for n in dep.size]
    for i, (size, stride) in enumerate(zip(sizes, strides[: len(sizes)], strict=True)):
        if isinstance(stride, int) and stride < 0:
            first, strides[i] = first + (size - 1) * stride, -stride
    room = as_size(_torch.extent(buffer)) - min(first, 0) if read and isinstance(first, int) else None
    for stride in strides[len(sizes) :]:
        steps = None if room is None else _steps(room, stride)
        if steps is None:
            return None
        sizes.append(steps)
    return Region(first, tuple(sizes), tuple(strides), 1)


def _steps(room: Size, stride: Size) -> Size | None:
    """Return how many elements that lie so far apart fit in; ``None`` where that is not known."""
    if not sympy.sympify(stride).is_positive:
        return None
    if isinstance(room, int) and isinstance(stride, int):
        return -(-room // stride)
    steps = sympy.cancel(room / stride)
    return as_size(steps) if sympy.denom(steps) == 1 else None
