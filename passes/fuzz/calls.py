"""Random programs with many places for the post-grad rules, and with all that spoils some of them.

Writes in between, views and outputs that share storage, sizes that are symbols, strides of all kinds,
promoted dtypes, -0.0, tensors of no dimension or no elements, and the empty operand that ``cat`` skips.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from .draws import Draws

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims
Tensor = torch.Tensor
DTYPES = (
    torch.float32,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
    torch.float64,
    torch.complex64,
)
VALUES = 0.0, 1.0, -0.0, 1, 0, 1, 2, 2.7, 0.1, -1, True, 0.5, 300, 255.0, 1 << 40, -3.5
ZEROS, ONES = (0.0, -0.0, 0, False), (1, 1.0, True)
SUMS = (
    *(None, None, torch.float32, torch.int32, torch.uint8, torch.float16, torch.int8, torch.int64),
    torch.complex64,
)
ARITHMETIC = aten.add.Tensor, aten.mul.Tensor, aten.sub.Tensor, aten.div.Tensor


def made(seed: int) -> tuple[GraphModule, list[Tensor]]:
    """Return the graph of a seed's program as it stands, writes and all, and inputs for it.

    The sizes of every third one are symbols.
    """
    mode: Literal["symbolic", "fake"] = "symbolic" if seed % 3 == 2 else "fake"
    draws = Draws.seeded(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gm = make_fx(Program(draws).run, tracing_mode=mode)(*inputs())
    # The tracer goes on with what a write returns; some graphs go on with the value that was written.
    for node in gm.graph.find_nodes(op="call_function", target=aten.copy_.default):
        if draws.chance(60):
            node.replace_all_uses_with(node.args[0])
    gm.recompile()
    return gm, inputs()


def inputs() -> list[Tensor]:
    """Return tensors with odd numbers and layouts; two of them share storage."""
    odd = torch.tensor([[-0.0, 0.0, 1.5, float("nan"), 3], [float("inf"), -2, 0.25, -0.0, 7]])
    turned, whole = (-torch.arange(6.0)).reshape(3, 2).half().t(), (-torch.arange(24.0)).reshape(4, 6)
    channels = (-torch.arange(64.0)).reshape(2, 8, 2, 2).to(memory_format=torch.channels_last)[:, :4]
    numbers = torch.complex(odd[:, 1:4], odd[:, :3])
    small = [-(torch.arange(15.0).reshape(3, 5) - 7), torch.arange(10).reshape(2, 5) % 3 == 0, torch.zeros(0)]
    square = torch.arange(16.0).reshape(4, 4).t()
    return [
        odd,
        torch.arange(10).reshape(2, 5),
        turned,
        whole[:2, :5],
        whole[2:, 1:],
        *small,
        channels,
        numbers,
        square,
    ]


def size(n: Any) -> int:
    """Return a size as it is in the inputs; asking for it makes no guard."""
    return n if isinstance(n, int) else int(n.node.hint)


def shape(x: Tensor) -> list[int]:
    """Return the shape of a tensor as it is in the inputs."""
    return list(map(size, x.shape))


class Program:
    """A program of some calls, the same for the same choices.

    Args:
        draws: where its choices come from.
    """

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._values: list[Tensor] = []

    def run(self, *given: Tensor) -> list[Tensor]:
        """Make the calls; returns what they made, or what is computed of it, at once or at the end."""
        self._values = list(given)
        now: list[Tensor] = []
        late: list[Tensor] = []
        steps = (
            self._rejoin,
            self._resplit,
            self._extend,
            self._sums,
            self._neutral,
            self._no_op,
            self._scatter,
        )
        for _ in range(self._draws.between(2, 7)):
            step: Callable[[], list[Tensor]] = self._draws.of(
                [*steps, self._view, self._write, self._resplit]
            )
            for value in step():
                self._values += [value] if math.prod(shape(value)) < 400 else []
                self._draws.of([now, now, late, late, late, []]).append(value)
            now = [*(self._read(t) if self._draws.chance(50) else t for t in now)]
        for value in late:
            now += self._returned(value) if self._draws.chance(35) else [self._read(value)]
        return now

    def _returned(self, x: Tensor) -> list[Tensor]:
        """Return a value as an output, sometimes with a view of it, which shows how it is laid out."""
        return [x, x.transpose(0, -1)] if x.dim() > 1 and self._draws.chance(40) else [x]

    def _read(self, x: Tensor) -> Tensor:
        """Compute something of a value, in which each of its bits can be seen, and its sign of zero."""
        if x.dtype.is_complex:  # torch negates zeros by how they are laid out
            x = aten.view_as_real.default(x)
        if x.dtype.is_floating_point and self._draws.chance(50):
            return torch.signbit(x)
        return torch.logical_not(x) if x.dtype == torch.bool else aten.neg.default(x)

    def _any(self, fits: Callable[[Tensor], bool] = lambda t: True) -> Tensor | None:
        """Return a value, rather a new one; ``None`` where none fits."""
        found = [t for t in self._values[::-1] if fits(t)]
        if found and self._draws.chance(40):
            found = found[:3]
        return self._draws.of(found) if found else None

    def _fresh(self, x: Tensor) -> Tensor:
        """Return a value, or one computed of it, which no input shares storage with."""
        return x.cos() if x.dtype.is_floating_point and self._draws.chance(40) else x

    def _dim(self, rank: int, dim: int) -> int:
        return dim - rank if self._draws.chance(30) else dim

    # --- cat and split ---

    def _cut(self, x: Tensor, dim: int) -> list[Tensor]:
        length: Any = x.shape[dim]
        first: Any = self._draws.between(0, size(length))
        if not isinstance(length, int) and self._draws.chance(40):
            first = length // 2
        sizes = [first, length - first]
        if self._draws.chance(20):
            sizes = [*sizes[:1], 0, *sizes[1:]]
        pieces: list[Tensor] = aten.split_with_sizes.default(x, sizes, self._dim(x.dim(), dim))
        return pieces

    def _rejoin(self) -> list[Tensor]:
        """Put the pieces of a value together again, mostly as they were."""
        x = self._any(lambda t: t.dim() > 0)
        if x is None:
            return []
        x = self._fresh(x)
        dim = self._draws.below(x.dim())
        pieces = list(self._cut(x, dim))
        if self._draws.chance(30):
            pieces = self._draws.of([pieces[::-1], pieces[1:], pieces[:-1], [*pieces, pieces[0]]])
        if self._draws.chance(40) and all(shape(p) == shape(pieces[0]) for p in pieces):
            dim = self._draws.below(x.dim())
        whole = aten.cat.default(pieces, self._dim(x.dim(), dim))
        if self._draws.chance(15) and whole.is_contiguous():
            return [whole, aten.view.default(whole, [-1])]
        return [whole, *(pieces[:1] if self._draws.chance(30) else ())]

    def _parts(self) -> tuple[list[Tensor], int]:
        """Return values that fit together at a dimension."""
        x = self._any(lambda t: t.dim() > 0)
        if x is None:
            return [], 0
        dim = self._draws.below(x.dim())

        def rest(t: Tensor) -> list[int]:
            return [n for d, n in enumerate(shape(t)) if d != dim]

        wanted, rank = rest(x), x.dim()
        more = [
            self._any(lambda t: t.dim() == rank and rest(t) == wanted)
            for _ in range(self._draws.between(1, 2))
        ]
        parts = [self._fresh(t) for t in (x, *more) if t is not None]
        if self._draws.chance(8):
            parts.insert(self._draws.below(2), self._values[7])  # the empty one of one dimension
        return parts, dim

    def _resplit(self) -> list[Tensor]:
        """Cut what was put together, mostly where it was."""
        parts, dim = self._parts()
        if not parts:
            return []
        whole = aten.cat.default(parts, self._dim(max(t.dim() for t in parts), dim))
        rank = whole.dim()
        sizes: list[Any] = [t.shape[dim] if t.dim() == rank else 0 for t in parts]
        if self._draws.chance(20):
            sizes = self._draws.of(
                [sizes[::-1], [*sizes, 0], [0, *sizes[1:-1], sum(sizes[:: len(sizes) - 1])]]
            )
        if self._draws.chance(20):
            self._write()
        pieces = list(aten.split_with_sizes.default(whole, sizes, self._dim(rank, dim)))
        if self._draws.chance(20):
            self._values += pieces[:2]
            self._write(pieces[:2])
        if self._draws.chance(15):
            pieces.append(self._strided(self._draws.of(pieces)))
        kept = [self._laid_out(p) if self._draws.chance(15) else p for p in pieces if self._draws.chance(70)]
        return [*kept, *([whole] if self._draws.chance(10) else ())]

    def _extend(self) -> list[Tensor]:
        """Put a part of a concatenation behind it."""
        parts, dim = self._parts()
        if not parts:
            return []
        whole = aten.cat.default(parts, self._dim(max(t.dim() for t in parts), dim))
        rank = whole.dim()
        if self._draws.chance(20):
            self._write()
        first = parts[0] if parts[0].dim() == rank else parts[-1]
        ends: list[Any] = [self._draws.between(0, size(first.shape[dim]) + 1), first.shape[dim]]
        start, step = self._draws.of([0, 0, 0, 0, 1]), self._draws.of([1, 1, 1, 1, 2])
        end = -1 if self._draws.chance(10) else self._draws.of(ends)
        outer = self._draws.below(rank) if self._draws.chance(20) else dim
        of = whole if self._draws.chance(90) else self._fresh(whole)
        part = aten.slice.Tensor(of, self._dim(rank, outer), start, end, step)
        more = [part] if self._draws.chance(10) else []
        joined = aten.cat.default([whole, part, *more], self._dim(rank, outer))
        return [joined, *self._draws.of([[], [], [], [whole], [part]])]

    # --- constants ---

    def _constant(self, shape: Sequence[Any], dtype: torch.dtype, values: Sequence[Any] = VALUES) -> Tensor:
        fill = self._draws.of(values)
        if not dtype.is_floating_point and dtype != torch.bool and not dtype.is_complex:
            info = torch.iinfo(dtype)
            fill = fill if info.min <= fill <= info.max else info.max
        if dtype == torch.float16:
            fill = fill if fill < 2048 else 2048
        kwargs = {"dtype": dtype, "layout": torch.strided, "pin_memory": False}
        made: Tensor = aten.full.default(list(shape), fill, **kwargs)
        return made

    def _sums(self) -> list[Tensor]:
        """Add up a constant."""
        like = self._draws.of(self._values)
        sizes = self._draws.of([(4,), (2, 3), (), (1,), (3, 1, 2), (0,), like.shape, like.shape])
        constant = self._constant(sizes, self._draws.of(DTYPES))
        self._values.append(constant)
        if self._draws.chance(25):
            self._write([constant] if self._draws.chance(70) else None)
        dim = self._dim(len(sizes), self._draws.below(max(len(sizes), 1)))
        of = self._draws.of(SUMS)
        sums = aten.cumsum.default(constant, dim if sizes else 0, **({"dtype": of} if of else {}))
        if self._draws.chance(20):
            self._values.append(sums)
            self._write([sums])
        return [self._laid_out(sums) if self._draws.chance(20) else sums]

    def _scatter(self) -> list[Tensor]:
        """Store a number into a constant, mostly once a row."""
        sizes = list(self._draws.of([(4,), (2, 3), (3, 1, 2), (1,), (2, 2, 2), ()]))
        constant = self._constant(sizes, self._draws.of([*DTYPES, torch.bfloat16]))
        self._values.append(constant)
        if self._draws.chance(15):
            self._write([constant])
        if self._draws.chance(15):
            constant = constant.t() if constant.dim() == 2 else constant + constant
        dim = self._draws.below(max(constant.dim(), 1))
        rows = [1 if d == dim else n for d, n in enumerate(shape(constant))]
        if self._draws.chance(15) and rows:
            at = self._draws.below(len(rows))
            rows[at] = self._draws.between(0, size(constant.shape[at]))
        index = torch.zeros(rows, dtype=torch.int64)
        index += torch.arange(index.numel()).view(rows) % max([1, *constant.shape[dim : dim + 1]])
        if index.dim() > 1 and self._draws.chance(30):
            index = index.transpose(0, -1).contiguous().transpose(0, -1)
        value = self._draws.of([n for n in VALUES if n != -1 or constant.dtype != torch.uint8])
        made = aten.scatter.value(constant, self._dim(constant.dim(), dim), index, value)
        return [made, torch.signbit(made) if made.dtype.is_floating_point else made]

    def _neutral(self) -> list[Tensor]:
        """Compute with a constant, which often changes nothing."""
        x = self._any(lambda t: t.numel() != 0 if isinstance(t.numel(), int) else True)
        if x is None:
            return []
        op = self._draws.of(ARITHMETIC)
        if self._draws.chance(30):
            number = self._draws.of([0, 1, 0.0, 1.0, -0.0, True, 2])
            if op is aten.sub.Tensor and torch.bool in (x.dtype, torch.tensor(number).dtype):
                return []
            return self._signed(op(x, number))
        sizes = [2, *x.shape] if self._draws.chance(15) else list(x.shape)
        if x.dim() and size(x.shape[0]) == 1 and self._draws.chance(30):  # other sizes, and the same strides
            sizes[0] = 2
        likely = ZEROS if op in (aten.add.Tensor, aten.sub.Tensor) else ONES
        values = likely if self._draws.chance(70) else VALUES
        constant = self._constant(sizes, self._draws.of([x.dtype, x.dtype, *DTYPES]), values)
        if self._draws.chance(30):
            constant = self._changed(constant)
        pair = (constant, x) if self._draws.chance(35) else (x, constant)
        if op is aten.sub.Tensor and torch.bool in (pair[0].dtype, pair[1].dtype):
            return []
        has_factor = op in (aten.add.Tensor, aten.sub.Tensor) and torch.bool not in (
            pair[0].dtype,
            pair[1].dtype,
        )
        return self._signed(
            op(*pair, **({"alpha": self._draws.of([2, -1])} if has_factor and self._draws.chance(25) else {}))
        )

    def _changed(self, constant: Tensor) -> Tensor:
        if self._draws.chance(50):
            self._values.append(constant)
            self._write([constant])
            return constant
        if constant.dtype == torch.bool:
            return constant.logical_not()
        changes: list[Callable[[Tensor], Tensor]] = [aten.neg.default, lambda t: t + 1, lambda t: t.half()]
        return self._draws.of(changes)(constant)

    def _signed(self, x: Tensor) -> list[Tensor]:
        return [x, torch.signbit(x)] if x.dtype.is_floating_point else [x]

    # --- views, copies, writes ---

    def _view(self) -> list[Tensor]:
        x = self._any()
        if x is None:
            return []
        views: list[Callable[[Tensor], Tensor]] = [torch.cos, lambda t: t.clone(), self._laid_out]
        if x.dim() == 2:
            views += [torch.t, self._strided, lambda t: aten.slice.Tensor(t, 1, 1, 99)]
        if x.dim() > 0:
            views += [lambda t: t.unsqueeze(0), lambda t: t.expand(2, *t.shape), lambda t: t.sum(0)]
        return [self._draws.of(views)(x)]

    def _strided(self, x: Tensor) -> Tensor:
        """Return elements that are found from where the storage begins."""
        begin, stride = self._draws.below(3), self._draws.between(1, 3)
        return aten.as_strided.default(x, [2], [stride], begin) if math.prod(shape(x)) > 6 else x.cos()

    def _laid_out(self, x: Tensor) -> Tensor:
        """Return a view that only a tensor without gaps has, of a value or of what is computed like it."""
        like = aten.clone.default(x) if x.dtype == torch.bool or x.dtype.is_complex else aten.neg.default(x)
        of = x if self._draws.chance(50) else like
        of = of.movedim(1, -1) if of.dim() == 4 else of
        return aten.view.default(of, [-1]) if of.is_contiguous() and of.dim() > 0 else of.cos()

    def _no_op(self) -> list[Tensor]:
        x = self._any()
        if x is None:
            return []
        ops: list[Callable[[Tensor], Any]] = [
            aten.clone.default,
            aten.alias.default,
            lambda t: prims.convert_element_type.default(t, t.dtype),
            lambda t: prims.convert_element_type.default(t, self._draws.of([t.dtype, torch.complex64])),
            lambda t: aten.cat.default([t]) if t.dim() else t.sin(),
            lambda t: aten.slice.Tensor(t, 0, 0, 99) if t.dim() else t.cos(),
        ]
        x = self._fresh(x)
        found = [self._draws.of(ops)(x)]
        if x.dim() == 2 and self._draws.chance(35):
            return [self._strided(found[0])]
        if self._draws.chance(25):  # another one beside it, or behind it
            found.append(self._draws.of(ops)(self._draws.of([x, found[0]])))
        return found

    def _write(self, among: Sequence[Tensor] | None = None) -> list[Tensor]:
        """Write a value, which may be an input, a view or a constant."""
        x = self._draws.of(among) if among else self._any()
        if x is None:
            return []
        strides = [size(s) for n, s in zip(shape(x), x.stride(), strict=True) if n > 1]
        if 0 not in strides and x.dtype != torch.bool:
            source = self._draws.of([t for t in [*self._values, x] if shape(t) == shape(x)])
            if source.dtype.is_complex and not x.dtype.is_complex:
                source = x
            aten.copy_.default(x, source + 1 if source.dtype != torch.bool else source)
        return []
