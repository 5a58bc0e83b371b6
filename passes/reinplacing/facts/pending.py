"""The reads of a buffer that are still to come, found by the bytes they touch.

A forward decision asks, for each candidate, who still reads the bytes that it would write. Time only moves
on, so reads that are over are dropped when they are met. What is left is kept in an interval tree (sorted
by first byte, with the furthest end of every subtree), so that a question costs the logarithm of the number
of reads, plus the answers. Columns and interleaved slices of one storage all span nearly the same bytes: for
them the tree is built over byte offsets modulo a stride, where they are apart.
"""

from __future__ import annotations

import bisect
import collections
from collections.abc import Iterator, Sequence

from ...memory.geometry import Geometry
from ...memory.region import Axes, Region
from .place import Read, Storage

_FEW = 24
_SAMPLE = 128
_MODULI = 4
Interval = tuple[int, int]


class Shelf:
    """The fixed order of all reads that could ever be in one buffer, on the line that separates them best.

    Args:
        geometry: gives the axes of regions.
        reads: all reads of the storages that would share a buffer with every candidate in place.
    """

    def __init__(self, geometry: Geometry, reads: Sequence[Read]) -> None:
        self._geometry = geometry
        placed = [r for r in reads if r.place.region.static and not geometry.axes(r.place.region).empty]
        axes = [geometry.axes(r.place.region) for r in placed]
        self._modulus = _best_modulus(axes)
        intervals = [_interval(a, self._modulus) for a in axes]
        order = sorted(range(len(placed)), key=lambda i: intervals[i])
        self.reads: list[Read] = [placed[i] for i in order]
        self.first: list[int] = [intervals[i][0] for i in order]
        self.end: list[int] = [intervals[i][1] for i in order]
        self.slot: dict[int, int] = {id(read): i for i, read in enumerate(self.reads)}

    def interval(self, region: Region) -> Interval:
        """Return where a static region lies on the shelf's line."""
        return _interval(self._geometry.axes(region), self._modulus)


def _interval(axes: Axes, modulus: int) -> Interval:
    """Return the bytes that a region spans, modulo ``modulus`` (0: as they are)."""
    if not modulus:
        return axes.offset, axes.offset + axes.span
    inner = 1 + sum((n - 1) * s for n, s in axes.axes if s < modulus)
    first = axes.offset % modulus
    if first + inner > modulus or any(s >= modulus and s % modulus for _, s in axes.axes):
        return 0, modulus
    return first, first + inner


def _best_modulus(axes: Sequence[Axes]) -> int:
    """Return the modulus under which regions cover the least of the line, of the strides that are common."""
    strides: collections.Counter[int] = collections.Counter(s for a in axes for n, s in a.axes if s > 1)
    sample = axes[:: max(1, len(axes) // _SAMPLE)]
    return min([0, *(s for s, _ in strides.most_common(_MODULI))], key=lambda m: _coverage(sample, m))


def _coverage(sample: Sequence[Axes], modulus: int) -> float:
    intervals = [_interval(a, modulus) for a in sample]
    if not intervals:
        return 0.0
    length = modulus or max(e for _, e in intervals) - min(f for f, _ in intervals)
    return sum(e - f for f, e in intervals) / max(1, length)


class Pending:
    """The reads of one buffer that may be still to come."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._few: list[Read] = []
        self._shelf: Shelf | None = None
        self._width = 0
        self._far: list[int] = []

    def add(self, reads: Sequence[Read]) -> None:
        """Add the reads of a storage that joined the buffer."""
        for read in reads:
            slot = None if self._shelf is None else self._shelf.slot.get(id(read))
            if slot is None or self._shelf is None:
                self._few.append(read)
            else:
                self._set(slot, self._shelf.end[slot])

    def is_large(self, now: float) -> bool:
        """Return whether a list does no longer do; what is over at ``now`` is dropped before."""
        if self._shelf is not None or len(self._few) <= _FEW:
            return False
        self._few = [r for r in self._few if r.time > now]
        return len(self._few) > _FEW

    def sort(self, shelf: Shelf) -> None:
        """Put the reads into a tree."""
        self._shelf = shelf
        self._width = 1 << max(0, len(shelf.reads) - 1).bit_length()
        self._far = [-1] * (2 * self._width)
        reads, self._few = self._few, []
        self.add(reads)

    def near(self, region: Region, now: float) -> Iterator[Read]:
        """Yield the reads after ``now`` that may touch a region; all that do are among them."""
        kept = [r for r in self._few if r.time > now]
        self._few = kept
        yield from kept
        shelf = self._shelf
        if shelf is None:
            return
        if not region.static:
            first, end = min(shelf.first, default=0), max(shelf.end, default=0)
        elif self._geometry.axes(region).empty:
            return
        else:
            first, end = shelf.interval(region)
        yield from self._search(first, bisect.bisect_left(shelf.first, end), now)

    def _search(self, first: int, count: int, now: float) -> Iterator[Read]:
        """Yield reads of the first ``count`` slots that end after ``first``."""
        assert self._shelf is not None
        far, width = self._far, self._width
        pending = [(1, 0, width)] if count else []
        while pending:
            node, low, width = pending.pop()
            if far[node] <= first:  # once more: a read that was over may have been dropped meanwhile
                continue
            while width > 1:  # down to the first one, the others later
                width //= 2
                node *= 2
                if low + width < count and far[node + 1] > first:
                    pending.append((node + 1, low + width, width))
                if far[node] <= first:
                    break
            else:
                read = self._shelf.reads[low]
                if read.time > now:
                    yield read
                else:
                    self._set(low, -1)

    def _set(self, slot: int, end: int) -> None:
        far = self._far
        node = slot + self._width
        far[node] = end
        while node > 1:
            node //= 2
            furthest = max(far[2 * node], far[2 * node + 1])
            if far[node] == furthest:
                return
            far[node] = furthest


class Shelves:
    """One shelf for each buffer that all candidates together would make, made when needed."""

    def __init__(
        self, geometry: Geometry, reads: dict[Storage, list[Read]], trees: dict[Storage, Storage]
    ) -> None:
        self._geometry = geometry
        self._reads = reads
        self._trees = trees
        self._members: dict[Storage, list[Storage]] | None = None
        self._made: dict[Storage, Shelf] = {}

    def of(self, storage: Storage) -> Shelf:
        """Return the shelf of the buffer that a storage belongs to."""
        tree = self._trees.get(storage, storage)
        if tree not in self._made:
            if self._members is None:
                self._members = collections.defaultdict(list)
                for member, top in self._trees.items():
                    self._members[top].append(member)
            members = self._members.get(tree, [tree])
            self._made[tree] = Shelf(self._geometry, [r for m in members for r in self._reads.get(m, ())])
        return self._made[tree]
