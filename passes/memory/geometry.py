"""Whether two regions of one storage meet, exactly where that can be told."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import sympy
import torch

from . import _torch
from .bounds import least_strides, upper_bounds
from .region import Axes, Pairs, Region, Size, as_size, by_stride, is_static

_FAKE_POINTER = 1 << 44
_MAX_WORK = 20_000
_CHOICES = 3  # quotients and choices in one difference that are looked through


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
        self._least: dict[Any, Size] = {}
        axes = functools.cache(Axes)
        self.axes: Callable[[Region], Axes] = axes
        # It does not refer to ``self``: a cycle would leave all regions of a graph to the collector.
        self._array = functools.cache(lambda region: np.asarray(_Strided(axes(region))))
        self._overlap: dict[tuple[Region, Region], bool | None] = {}
        self._at_most: dict[tuple[Size, Size], bool] = {}
        self._folded: dict[tuple[Any, ...], bool] = {}
        self._wholes: dict[Region, Region] = {}

    def hint(self, size: Size) -> int:
        """Return a size as an int: exact when static, else its hint (0 where there is none)."""
        return _torch.size_hint(self.shape_env, size)

    def suppose_apart(self, tensor: torch.Tensor) -> None:
        """Take no two elements of a tensor for the same bytes, unless they are in the compiled call."""
        self._least |= least_strides(tensor, self.hint)

    def know_part(self, part: Region, whole: Region, *, once: bool = True) -> None:
        """Note that a view, of sizes that may be anything, shows no more than what it is a view of.

        By strides alone it cannot be told: ``x[a:b]`` would have to be known to end no later than ``x`` does.

        Args:
            part: the view.
            whole: what it is a view of.
            once: whether it shows no element more often.
        """
        if part.static:
            return
        if part != whole:
            self._wholes.setdefault(part, whole)
        if once and not self.self_overlapping(whole):
            self._folded[part[1:]] = False

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

    def _nonpositive(self, expr: Any, depth: int = _CHOICES) -> bool:
        """Return whether an expression is at most 0: by itself, by its factors' signs, or by a bound of it.

        Intervals of sums of products are too wide (``s*t - 2*t`` has no upper bound, ``t*(s - 2)`` has a
        sign), so a difference that is not decided as it stands is factored.
        """
        if self.known(sympy.Le(expr, 0)):
            return True
        factors = sympy.Mul.make_args(sympy.factor(expr))
        rest = [f for f in factors if not self.known(sympy.Ge(f, 0))]
        if len(factors) > 1 and len(rest) == 1 and self.known(sympy.Le(rest[0], 0)):
            return True
        bounds = upper_bounds(expr, self.known, self._least) if depth else ()
        return any(all(self._nonpositive(one, depth - 1) for one in several) for several in bounds)

    def equal(self, a: Size, b: Size) -> bool:
        """Return whether ``a == b`` for all sizes."""
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        return bool(a == b) or self.known(sympy.Eq(sympy.expand(a - b), 0))

    def equal_where_filled(self, a: Size, b: Size, sizes: Sequence[Size]) -> bool:
        """Return whether ``a == b`` wherever a tensor of these sizes has an element.

        torch computes strides from ``Max(1, n)``, and an operator that lays its result out itself from ``n``:
        where they are not the same, there is nothing to address.
        """
        if self.equal(a, b):
            return True
        if isinstance(a, int) and isinstance(b, int):
            return False
        at_least_one = _at_least_one(sizes)
        return bool(sympy.expand(a).xreplace(at_least_one) == sympy.expand(b).xreplace(at_least_one))

    def same_layout(self, a: Region, b: Region) -> bool:
        """Return whether sizes, strides and item size agree (strides of up to one element are ignored)."""
        if a.itemsize != b.itemsize or len(a.sizes) != len(b.sizes):
            return False
        if a.sizes == b.sizes and a.strides == b.strides:
            return True
        return all(
            self.equal(n, m)
            and (n == 1 or (n.__class__ is int and n == 0) or self.equal_where_filled(s, r, a.sizes))
            for n, m, s, r in zip(a.sizes, b.sizes, a.strides, b.strides, strict=True)
        )

    def same(self, a: Region, b: Region) -> bool:
        """Return whether element i of ``a`` is element i of ``b``, for every i."""
        return a == b or (self.same_layout(a, b) and self.equal(a.offset, b.offset))

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
            return False if self._are_apart(x, y) or self._are_apart(y, x) else None
        if x.dense and y.dense:
            return True
        try:
            return bool(np.shares_memory(self._array(a), self._array(b), max_work=_MAX_WORK))  # type: ignore[arg-type]
        except np.exceptions.TooHardError:
            return None

    def _are_apart(self, x: Axes, y: Axes) -> bool:
        """Return whether no byte of ``y``, which starts at or after ``x``, is one of ``x``.

        Odd columns of odd rows begin no whole number of steps behind even ones of even rows. It is enough
        that rows are apart when all bytes between the ends of each row are taken for its own.
        """
        delta, rank = y.offset - x.offset, max(len(x.axes), len(y.axes))
        return any(self._is_separated(delta, x.within(n), y.within(n)) for n in range(rank, 0, -1))

    def _is_separated(self, delta: Size, xs: Pairs, ys: Pairs) -> bool:
        """Return whether an axis separates what begins some bytes behind something from that.

        In a basis of strides where no axis runs into the next outer one, each byte has one coordinate
        per axis, so boxes are disjoint iff their intervals on some axis are.
        """
        strides = [s for _, s in by_stride(list({s: (0, s) for _, s in (*xs, *ys)}.values()))]
        if strides[-1:] != [1]:
            strides.append(1)  # one column lies some bytes behind another one
        steps = self.digits(delta, strides)
        if steps is None:
            return False
        mine, theirs = {s: n for n, s in xs}, {s: n for n, s in ys}
        inner: Size = 0
        for step, stride in zip(reversed(steps), reversed(strides), strict=True):
            if not self.at_most(inner + 1, stride):
                return False
            far = self._max(mine.get(stride, 1), step + theirs.get(stride, 1))
            inner = inner + (far - 1) * stride
        return any(self.at_most(mine.get(s, 1), k) for k, s in zip(steps, strides, strict=True))

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
        whole = self._by_terms(delta, strides)
        if whole is not None:
            return whole
        for i, stride in enumerate(strides):  # the last column: not a row, and one column less
            quotient = sympy.cancel(delta / stride)
            if sympy.denom(quotient) == 1 and self.at_most(0, quotient):
                return [as_size(quotient) if i == j else 0 for j in range(len(strides))]
        return None

    def _by_terms(self, delta: Any, strides: Sequence[Size]) -> list[Size] | None:
        """Return steps for which each term of a sum goes along the first stride that divides it."""
        found = list[Size]()
        for stride in strides:
            quotients = [(term, sympy.cancel(term / stride)) for term in sympy.Add.make_args(delta)]
            whole = [(term, quotient) for term, quotient in quotients if sympy.denom(quotient) == 1]
            found.append(as_size(sum(quotient for _, quotient in whole)))
            delta -= sum(term for term, _ in whole)
        return found if delta == 0 and all(self.at_most(0, step) for step in found) else None

    def contains(self, outer: Region, inner: Region) -> bool:
        """Return whether every byte of ``inner`` surely lies in ``outer`` (``False`` when not shown)."""
        if outer == inner or (not inner.static and outer in self._around(inner)):
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

    def _around(self, part: Region) -> set[Region]:
        """Return what a view is a view of, and what that is a view of, and so on."""
        found = set[Region]()
        while part in self._wholes and part not in found:
            found.add(part)
            part = self._wholes[part]
        return {*found, part}

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
        for n, s in reversed(by_stride(pairs)):
            if not self.at_most(inner + 1, s):
                return True
            inner = inner + (n - 1) * s
        return False


def clipped(geometry: Geometry, region: Region, window: Region) -> Region:
    """Return a part of a region that holds every byte that it shares with a window.

    The part may hold more; of what is not static, and where nothing is shared, it is the whole region.
    """
    if not (region.static and window.static):
        return region
    frame = geometry.axes(window)
    pairs = list(zip(region.sizes, region.strides, strict=True))
    if frame.empty or any(n == 0 for n, _ in pairs):
        return region
    offset, sizes = region.offset, list(region.sizes)
    rest = region.itemsize + sum((n - 1) * s for n, s in pairs)  # bytes from the first to the last
    for axis in sorted(range(len(sizes)), key=lambda i: -region.strides[i]):
        stride = region.strides[axis]
        if stride == 0 or sizes[axis] == 1:
            continue
        rest -= (sizes[axis] - 1) * stride
        first = max(0, -((offset + rest - 1 - frame.offset) // stride))
        last = min(sizes[axis] - 1, (frame.offset + frame.span - 1 - offset) // stride)
        if first > last:
            return region
        offset, sizes[axis] = offset + first * stride, last - first + 1
        if first < last:
            break  # further in, the rows begin at more than one place
    return region._replace(offset=offset, sizes=tuple(sizes))


def may_be_padded(value: torch.Tensor) -> bool:
    """Return whether a clone of a tensor can start anywhere in its storage: all of it is static and apart."""
    return is_static(value) and 0 not in value.size() and not Geometry().self_overlapping(Region.of(value))


def padding(value: torch.Tensor, item: int) -> int:
    """Return at which element of its storage a clone starts that views of such items are made of."""
    return int(value.storage_offset()) % max(1, item // value.element_size())


def _at_least_one(sizes: Sequence[Size]) -> dict[Any, Any]:
    """Return positive symbols for those that are a size: no size is 0 where there is an element."""
    symbols = {n for n in sizes if not isinstance(n, int) and n.is_Symbol}
    return {n: sympy.Symbol(n.name, integer=True, positive=True) for n in symbols}
