"""The bytes a tensor occupies inside a storage, and exact answers to whether two such sets meet.

Strided regions are unions of arithmetic progressions of bytes. Static ones are compared exactly by
``numpy.shares_memory``, whose bounded search (`diophantine` problem, NP-hard in the number of
dimensions) works on strides and pointers alone and never touches memory. Symbolic ones are compared by
intervals and by axes; what cannot be shown counts as overlapping. No comparison adds a guard.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy
import torch

from . import _torch

Size = Any  # an int, or a sympy expression over the sizes of the graph

_FAKE_POINTER = 1 << 44
_MAX_WORK = 20_000
_INT = frozenset({int})


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

    def moves_from(self, other: Region, most: int) -> list[tuple[int, int]] | None:
        """Return the first bytes of element i there and here; ``None`` for too many, or other shapes."""
        if not (self.static and other.static) or (self.sizes, self.itemsize) != (other.sizes, other.itemsize):
            return None
        if math.prod(self.sizes) > most:
            return None
        steps = [
            [(i * a, i * b) for i in range(n)]
            for n, a, b in zip(self.sizes, other.strides, self.strides, strict=True)
        ]
        moves = itertools.product(*steps)
        return [(other.offset + sum(a for a, _ in m), self.offset + sum(b for _, b in m)) for m in moves]

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


class Axes:
    """A region as sorted axes ``(count, stride)`` in bytes: outer first, contiguous ones merged."""

    __slots__ = ("axes", "empty", "offset", "span")

    def __init__(self, region: Region) -> None:
        pairs = [(n, s) for n, s in zip(region.sizes, region.strides, strict=True) if n != 1 and s != 0]
        pairs.append((region.itemsize, 1))
        self.offset: Size = region.offset
        self.empty: bool = any(n == 0 for n in region.sizes)
        self.axes: tuple[tuple[Size, Size], ...] = _merged(_sorted(pairs))
        self.span: Size = 1 + sum((n - 1) * s for n, s in self.axes)

    @property
    def dense(self) -> bool:
        """Whether the bytes are one interval."""
        return len(self.axes) == 0 or (len(self.axes) == 1 and self.axes[0][1] == 1)


def _sorted(pairs: list[tuple[Size, Size]]) -> list[tuple[Size, Size]]:
    if all(isinstance(s, int) for _, s in pairs):
        return sorted(pairs, key=lambda p: -p[1])
    # torch orders symbolic dimensions outer to inner unless transposed: sort by degree, which is
    # enough for products of sizes; a wrong order only makes an answer less precise, never wrong.
    return sorted(pairs, key=lambda p: _degree(p[1]), reverse=True)


def _degree(stride: Size) -> tuple[int, int]:
    if isinstance(stride, int):
        return (0, stride)
    hint = stride.as_coeff_Mul()[0]
    return (len(stride.free_symbols), int(hint) if hint.is_Integer else 1)


def _merged(pairs: list[tuple[Size, Size]]) -> tuple[tuple[Size, Size], ...]:
    merged: list[tuple[Size, Size]] = []
    for n, s in pairs:
        if merged and merged[-1][1] == n * s:
            merged[-1] = (merged[-1][0] * n, s)
        else:
            merged.append((n, s))
    return tuple(p for p in merged if p[0] != 1) or ((1, 1),)


class _Strided:
    """An array that numpy can reason about without memory behind it."""

    __slots__ = ("__array_interface__",)

    def __init__(self, axes: Axes) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "data": (_FAKE_POINTER + axes.offset, False),
            "shape": tuple(n for n, _ in axes.axes),
            "strides": tuple(s for _, s in axes.axes),
        }


class Geometry:
    """Compares regions of one graph; answers are cached by value.

    Args:
        shape_env: the graph's ``ShapeEnv`` for symbolic sizes, or ``None``.
    """

    def __init__(self, shape_env: Any = None) -> None:
        self.shape_env = shape_env
        axes = functools.cache(Axes)
        self.axes: Callable[[Region], Axes] = axes
        # It does not refer to ``self``: a cycle would leave all regions of a graph to the collector.
        self._array = functools.cache(lambda region: np.asarray(_Strided(axes(region))))
        self._overlap: dict[tuple[Region, Region], bool | None] = {}
        self._at_most: dict[tuple[Size, Size], bool] = {}
        self._folded: dict[tuple[Any, ...], bool] = {}

    def hint(self, size: Size) -> int:
        """Return a size as an int: exact when static, else its hint (0 where there is none)."""
        return _torch.size_hint(self.shape_env, size)

    def known(self, relation: Any) -> bool:
        """Return whether a relation between sizes holds for all sizes."""
        return _torch.statically_known(self.shape_env, relation)

    def at_most(self, a: Size, b: Size) -> bool:
        """Return whether ``a <= b`` for all sizes."""
        if isinstance(a, int) and isinstance(b, int):
            return a <= b
        key = (a, b)
        if key not in self._at_most:
            self._at_most[key] = self._nonpositive(sympy.expand(a - b))
        return self._at_most[key]

    def _nonpositive(self, expr: Any) -> bool:
        """Return whether an expression is at most 0, by itself or as a product of signed factors.

        Intervals of sums of products are too wide (``s*t - 2*t`` has no upper bound, ``t*(s - 2)`` has a
        sign), so a difference that is not decided as it stands is factored.
        """
        if self.known(sympy.Le(expr, 0)):
            return True
        factors = sympy.Mul.make_args(sympy.factor(expr))
        rest = [f for f in factors if not self.known(sympy.Ge(f, 0))]
        return len(factors) > 1 and (len(rest) == 1 and self.known(sympy.Le(rest[0], 0)))

    def equal(self, a: Size, b: Size) -> bool:
        """Return whether ``a == b`` for all sizes."""
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        return bool(a == b) or self.known(sympy.Eq(sympy.expand(a - b), 0))

    def same_layout(self, a: Region, b: Region) -> bool:
        """Return whether sizes, strides and item size agree (strides of up to one element are ignored)."""
        if a.itemsize != b.itemsize or len(a.sizes) != len(b.sizes):
            return False
        if a.sizes == b.sizes and a.strides == b.strides:
            return True
        return all(
            self.equal(n, m) and (n == 1 or (n.__class__ is int and n == 0) or self.equal(s, r))
            for n, m, s, r in zip(a.sizes, b.sizes, a.strides, b.strides, strict=True)
        )

    def same(self, a: Region, b: Region) -> bool:
        """Return whether element i of ``a`` is element i of ``b``, for every i."""
        return a == b or (self.same_layout(a, b) and self.equal(a.offset, b.offset))

    def same_in_order(self, a: Region, b: Region) -> bool:
        """Return whether the elements are the same, counted row by row, however they are grouped."""
        return self.same(a, b) or (
            a.itemsize == b.itemsize and self.equal(a.offset, b.offset) and a.in_order == b.in_order
        )

    def overlap(self, a: Region, b: Region) -> bool | None:
        """Return whether the regions share a byte; ``None`` when it cannot be decided."""
        if a is b or a == b:
            return not self.axes(a).empty
        key = (a, b)
        if key not in self._overlap:
            self._overlap[key] = self._overlap[b, a] = self._decide_overlap(a, b)
        return self._overlap[key]

    def _decide_overlap(self, a: Region, b: Region) -> bool | None:
        x, y = self.axes(a), self.axes(b)
        if x.empty or y.empty:
            return False
        if self.at_most(x.offset + x.span, y.offset) or self.at_most(y.offset + y.span, x.offset):
            return False
        if not (a.static and b.static):
            return None if not self._apart(x, y) and not self._apart(y, x) else False
        if x.dense and y.dense:
            return True
        try:
            return bool(np.shares_memory(self._array(a), self._array(b), max_work=_MAX_WORK))  # type: ignore[arg-type]
        except np.exceptions.TooHardError:
            return None

    def _apart(self, x: Axes, y: Axes) -> bool:
        """Return whether an axis separates ``y`` from ``x``, where ``y`` starts at or after ``x``.

        In a basis of strides where no axis runs into the next outer one, each byte has one coordinate
        per axis, so boxes are disjoint iff their intervals on some axis are.
        """
        strides = [s for _, s in _sorted(list({s: (0, s) for _, s in (*x.axes, *y.axes)}.values()))]
        steps = self.digits(y.offset - x.offset, strides)
        if steps is None:
            return False
        xs, ys = {s: n for n, s in x.axes}, {s: n for n, s in y.axes}
        inner: Size = 0
        for step, stride in zip(reversed(steps), reversed(strides), strict=True):
            if not self.at_most(inner + 1, stride):
                return False
            far = self._max(xs.get(stride, 1), step + ys.get(stride, 1))
            inner = inner + (far - 1) * stride
        return any(self.at_most(xs.get(s, 1), k) for k, s in zip(steps, strides, strict=True))

    def _max(self, a: Size, b: Size) -> Size:
        if self.at_most(a, b):
            return b
        return a if self.at_most(b, a) else a + b

    def digits(self, delta: Size, strides: Sequence[Size]) -> list[Size] | None:
        """Return non-negative steps along ``strides`` (outer first) that add up to ``delta``, or ``None``."""
        if isinstance(delta, int) and all(isinstance(s, int) for s in strides):
            if delta < 0:
                return None
            steps: list[Size] = []
            for stride in strides:
                steps.append(delta // stride)
                delta %= stride
            return steps if delta == 0 else None
        delta = sympy.expand(delta)
        if delta == 0:
            return [0] * len(strides)
        for i, stride in enumerate(strides):
            quotient = sympy.cancel(delta / stride)
            if sympy.denom(quotient) == 1 and self.at_most(0, quotient):
                return [quotient if i == j else 0 for j in range(len(strides))]
        return None

    def contains(self, outer: Region, inner: Region) -> bool:
        """Return whether every byte of ``inner`` surely lies in ``outer`` (``False`` when not shown)."""
        if outer == inner:
            return True
        x, y = self.axes(outer), self.axes(inner)
        if y.empty:
            return True
        if x.empty:
            return False
        if x.dense:
            return self.at_most(x.offset, y.offset) and self.at_most(y.offset + y.span, x.offset + x.span)
        # Axes that make up one of the inner region may be several of the outer one.
        single = [(n, s) for n, s in zip(inner.sizes, inner.strides, strict=True) if n != 1]
        return any(self._contains_axes(x, y, axes) for axes in (y.axes, (*single, (inner.itemsize, 1))))

    def _contains_axes(self, x: Axes, y: Axes, axes: Iterable[tuple[Size, Size]]) -> bool:
        strides = [s for _, s in x.axes]
        if strides[-1] != 1:
            strides.append(1)
        steps = self.digits(y.offset - x.offset, strides)
        if steps is None:
            return False
        room = [n for n, _ in x.axes] + [1] * (len(strides) - len(x.axes))
        far = list(steps)
        for count, stride in axes:
            # One step along the inner region may be a step along several axes of the outer one.
            step = self.digits(stride, strides)
            if step is None:
                return False
            far = [f + (count - 1) * s for f, s in zip(far, step, strict=True)]
        return all(self.at_most(f + 1, n) for f, n in zip(far, room, strict=True))

    def self_overlapping(self, region: Region) -> bool:
        """Return whether two elements of the region may share a byte (``True`` when not excluded)."""
        form = region[1:]
        found = self._folded.get(form)
        if found is None:
            found = self._folded[form] = self._is_folded(region)
        return found

    def _is_folded(self, region: Region) -> bool:
        if any(n == 0 for n in region.sizes):
            return False
        pairs = [(n, s) for n, s in zip(region.sizes, region.strides, strict=True) if n != 1]
        if any(s == 0 for _, s in pairs):
            return True
        inner: Size = region.itemsize - 1
        for n, s in reversed(_sorted(pairs)):
            if not self.at_most(inner + 1, s):
                return True
            inner = inner + (n - 1) * s
        return False
