"""The bytes a tensor occupies inside a storage, and exact answers to whether two such sets meet.

Strided regions are unions of arithmetic progressions of bytes. Static ones are compared exactly by
``numpy.shares_memory``, whose bounded search (`diophantine` problem, NP-hard in the number of
dimensions) works on strides and pointers alone and never touches memory. Symbolic ones are compared by
intervals and by axes; what cannot be shown counts as overlapping. No comparison adds a guard.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sympy
import torch

Size = Any  # an int, or a sympy expression over the sizes of the graph
Pairs = tuple[tuple[Size, Size], ...]  # counts and strides
_INT = frozenset({int})
_LARGE = sympy.Integer(10007)


class Region(NamedTuple):
    """Bytes of a strided tensor in its storage.

    A named tuple: regions are made, compared and looked up for every node, which a tuple does several times
    as fast as a data class.

    Args:
        offset: first byte.
        sizes: elements per dimension.
        strides: bytes between neighbours, per dimension.
        itemsize: bytes per element.
    """

    offset: Size
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    itemsize: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Region:
        """Return the region of a (fake) tensor; symbolic sizes become sympy expressions."""
        item: int = tensor.dtype.itemsize
        sizes, strides, offset = tensor.size(), tensor.stride(), tensor.storage_offset()
        if _INT.issuperset(map(type, (offset, *sizes, *strides))):
            return cls(offset * item, tuple(sizes), tuple([s * item for s in strides]), item)
        return cls(
            as_size(tensor.storage_offset()) * item,
            tuple(map(as_size, tensor.size())),
            tuple(as_size(s) * item for s in tensor.stride()),
            item,
        )

    @classmethod
    def flat(cls, nbytes: Size) -> Region:
        """Return the whole of a storage of ``nbytes`` bytes."""
        return cls(0, (nbytes,), (1,), 1)

    def shifted(self, delta: Size) -> Region:
        """Return the region moved by ``delta`` bytes."""
        return self if delta == 0 else Region(self.offset + delta, *self[1:])

    @property
    def static(self) -> bool:
        """Whether every number is an int."""
        return _INT.issuperset(map(type, (self.offset, *self.sizes, *self.strides)))

    @property
    def nbytes(self) -> Size:
        """Bytes of the elements (without gaps; an element that overlaps another counts again)."""
        total: Size = self.itemsize
        for size in self.sizes:
            total = total * size
        return total

    @property
    def in_order(self) -> tuple[tuple[Size, Size], ...]:
        """The region as axes ``(count, stride)`` in the order of its elements, and of the bytes in each.

        Two regions that begin together have it in common iff byte i of one is byte i of the other.
        """
        pairs = [(n, s) for n, s in zip(self.sizes, self.strides, strict=True) if n != 1]
        return _merged([*pairs, (self.itemsize, 1)])

    @property
    def once(self) -> Region:
        """The region with each repeated (expanded) element named once."""
        kept = [(n, s) for n, s in zip(self.sizes, self.strides, strict=True) if s != 0 or n == 0]
        return self._replace(sizes=tuple(n for n, _ in kept), strides=tuple(s for _, s in kept))


def as_size(value: Any) -> Size:
    """Return an int as it is and a ``SymInt`` as its sympy expression (an int where that is a constant)."""
    if isinstance(value, int):
        return int(value)
    expr = value.node.expr if hasattr(value, "node") else value
    return int(expr) if getattr(expr, "is_Integer", False) else expr


def is_static(tensor: torch.Tensor) -> bool:
    """Return whether no symbol says how a tensor is laid out."""
    return _INT.issuperset(map(type, (tensor.storage_offset(), *tensor.size(), *tensor.stride())))


def is_multiple(nbytes: Size, item: int) -> bool:
    """Return whether a tensor may move by so many bytes where moves by whole items are asked for, or none."""
    return item <= 1 or (isinstance(nbytes, int) and nbytes % item == 0)


class Axes:
    """A region as sorted axes ``(count, stride)`` in bytes: outer first, contiguous ones merged."""

    __slots__ = ("axes", "empty", "offset", "span")

    def __init__(self, region: Region) -> None:
        pairs = [(n, s) for n, s in zip(region.sizes, region.strides, strict=True) if n != 1 and s != 0]
        pairs.append((region.itemsize, 1))
        self.offset: Size = region.offset
        self.empty: bool = any(n == 0 for n in region.sizes)
        self.axes: Pairs = _merged(_one_for_each_stride(by_stride(pairs)))
        self.span: Size = 1 + sum((n - 1) * s for n, s in self.axes)

    def within(self, rank: int) -> Pairs:
        """Return so many of the outer axes, and all bytes between the ends of what lies inside of them."""
        outer, inner = self.axes[:rank], self.axes[rank:]
        return (*outer, (1 + sum((n - 1) * s for n, s in inner), 1)) if inner else outer

    @property
    def dense(self) -> bool:
        """Whether the bytes are one interval."""
        return len(self.axes) == 0 or (len(self.axes) == 1 and self.axes[0][1] == 1)


def by_stride(pairs: list[tuple[Size, Size]]) -> list[tuple[Size, Size]]:
    """Return sizes and strides of dimensions with more than one element, the largest stride first."""
    if all(isinstance(s, int) for _, s in pairs):
        return sorted(pairs, key=lambda p: -p[1])
    # Where sizes are large: a wrong order only makes an answer less precise, never wrong.
    return sorted(pairs, key=lambda p: _where_large(p[1]), reverse=True)


def _one_for_each_stride(pairs: list[tuple[Size, Size]]) -> list[tuple[Size, Size]]:
    """Return the same bytes with one axis for those of one stride: windows of two rows begin at each row."""
    found: list[tuple[Size, Size]] = []
    for n, s in pairs:
        if found and found[-1][1] == s:
            found[-1] = (found[-1][0] + n - 1, s)
        else:
            found.append((n, s))
    return found


def _where_large(stride: Size) -> Any:
    """Return a stride where each symbol is one large number, a prime: as good as nothing divides it."""
    return stride if isinstance(stride, int) else stride.xreplace(dict.fromkeys(stride.free_symbols, _LARGE))


def _are_equal(a: Size, b: Size) -> bool:
    """Return whether two sizes are one polynomial; a stride may be written out, as ``n * (n + 1)`` is not."""
    if a == b or (isinstance(a, int) and isinstance(b, int)):
        return bool(a == b)
    return bool(sympy.expand(a - b) == 0)


def _merged(pairs: list[tuple[Size, Size]]) -> tuple[tuple[Size, Size], ...]:
    merged: list[tuple[Size, Size]] = []
    for n, s in pairs:
        if merged and _are_equal(merged[-1][1], n * s):
            merged[-1] = (merged[-1][0] * n, s)
        else:
            merged.append((n, s))
    return tuple(p for p in merged if p[0] != 1) or ((1, 1),)
