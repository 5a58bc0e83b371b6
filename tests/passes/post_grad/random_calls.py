"""Random programs with many places for the rules, and with writes, views and outputs that spoil some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pytest_reinplace.passes.fuzz.draws import Draws

aten, prims = torch.ops.aten, torch.ops.prims
Tensor = torch.Tensor
DTYPES = torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.float64
VALUES = 0.0, 1.0, -0.0, 1, 0, 1, 2, 2.7, -1, True, 0.5


class Program:
    """A program of some calls, the same for the same choices.

    Args:
        draws: where its choices come from.
    """

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._values: list[Tensor] = []

    def run(self, *inputs: Tensor) -> list[Tensor]:
        """Make the calls; returns what they made, or what is computed of it, at once or at the end."""
        self._values = list(inputs)
        now: list[Tensor] = []
        late: list[Tensor] = []
        for _ in range(self._draws.between(2, 7)):
            ours = (
                self._rejoin,
                self._resplit,
                self._extend,
                self._sums,
                self._neutral,
                self._no_op,
                self._scatter,
            )
            made = self._draws.of([*ours, self._view, self._write, self._neutral, self._resplit])()
            for value in made:
                self._values += [value] if value.numel() < 400 else []
                self._draws.of([now, late, late, []]).append(value)
            now = [*(self._read(t) if self._draws.chance(50) else t for t in now)]
        return [*now, *(t if self._draws.chance(20) else self._read(t) for t in late)]

    def _read(self, x: Tensor) -> Tensor:
        """Compute something of a value, in which each of its bits can be seen, and its sign of zero."""
        if x.dtype.is_floating_point and self._draws.chance(50):
            return torch.signbit(x)
        return torch.logical_not(x) if x.dtype == torch.bool else aten.neg.default(x)

    def _any(self, like: Tensor | None = None) -> Tensor:
        """Return a value, of the rank of another one."""
        return self._draws.of([t for t in self._values[::-1] if like is None or t.dim() == like.dim()])

    def _dim(self, rank: int, dim: int) -> int:
        return dim - rank if self._draws.chance(30) else dim

    def _cut(self, x: Tensor, dim: int) -> list[Tensor]:
        first = self._draws.between(0, x.shape[dim])
        sizes = [first, x.shape[dim] - first]
        if self._draws.chance(20):
            sizes = [*sizes[:1], 0, *sizes[1:]]
        pieces: list[Tensor] = aten.split_with_sizes.default(x, sizes, self._dim(x.dim(), dim))
        return pieces

    def _rejoin(self) -> list[Tensor]:
        """Put the pieces of a value together again, mostly as they were."""
        x = self._any()
        if x.dim() == 0:
            return []
        dim = self._draws.below(x.dim())
        pieces = self._cut(x, dim)
        if self._draws.chance(15):
            pieces = pieces[::-1]
        if self._draws.chance(15) and all(p.shape == pieces[0].shape for p in pieces):
            dim = self._draws.below(x.dim())
        whole = aten.cat.default(pieces, self._dim(x.dim(), dim))
        return [whole, *(pieces[:1] if self._draws.chance(30) else ())]

    def _resplit(self) -> list[Tensor]:
        """Cut what was put together, mostly where it was."""
        parts = self._parts()
        if not parts:
            return []
        dim = parts[0][1]
        tensors = [t for t, _ in parts]
        whole = aten.cat.default(tensors, self._dim(tensors[0].dim(), dim))
        sizes = [t.shape[dim] for t in tensors]
        if self._draws.chance(15):
            sizes = sizes[::-1]
        if self._draws.chance(15) and whole.shape[0] == whole.shape[-1] == whole.shape[dim]:
            dim = self._draws.of([0, whole.dim() - 1])
        if self._draws.chance(20):
            self._write()
        pieces = aten.split_with_sizes.default(whole, sizes, self._dim(tensors[0].dim(), dim))
        return [*(p for p in pieces if self._draws.chance(70)), *([whole] if self._draws.chance(10) else ())]

    def _parts(self) -> list[tuple[Tensor, int]]:
        x = self._any()
        if x.dim() == 0:
            return []
        dim = self._draws.below(x.dim())
        rest = [n for d, n in enumerate(x.shape) if d != dim]
        fits = [t for t in self._values if t.dim() == x.dim()]
        fits = [t for t in fits if [n for d, n in enumerate(t.shape) if d != dim] == rest]
        return [(x, dim), *((self._draws.of(fits[::-1]), dim) for _ in range(self._draws.between(1, 2)))]

    def _extend(self) -> list[Tensor]:
        """Put a part of a concatenation behind it."""
        parts = self._parts()
        if not parts:
            return []
        dim, rank = parts[0][1], parts[0][0].dim()
        whole = aten.cat.default([t for t, _ in parts], self._dim(rank, dim))
        if self._draws.chance(20):
            self._write()
        end = self._draws.between(0, parts[0][0].shape[dim] + 1)
        part = aten.slice.Tensor(whole, self._dim(rank, dim), 0, end)
        return [aten.cat.default([whole, part], self._dim(rank, dim))]

    def _constant(self, shape: list[int], dtype: torch.dtype) -> Tensor:
        fill = self._draws.of(VALUES)
        if dtype == torch.uint8 and fill == -1:
            fill = 255
        made: Tensor = aten.full.default(shape, fill, dtype=dtype, layout=torch.strided, pin_memory=False)
        return made

    def _sums(self) -> list[Tensor]:
        shape = list(self._draws.of([(4,), (2, 3), (), (1,), (3, 1, 2), (0,)]))
        constant = self._constant(shape, self._draws.of(DTYPES))
        self._values.append(constant)
        if self._draws.chance(20):
            self._write()
        dim = self._dim(len(shape), self._draws.below(max(len(shape), 1)))
        of = self._draws.of([None, None, torch.float32, torch.int32, torch.uint8, torch.float16])
        return [aten.cumsum.default(constant, dim if shape else 0, **({"dtype": of} if of else {}))]

    def _scatter(self) -> list[Tensor]:
        """Store a number into a constant, mostly once a row."""
        shape = list(self._draws.of([(4,), (2, 3), (3, 1, 2), (1,), (2, 2, 2), ()]))
        constant = self._constant(shape, self._draws.of([*DTYPES, torch.bfloat16]))
        self._values.append(constant)
        if self._draws.chance(15):
            self._write()
        if self._draws.chance(15):
            constant = constant.t() if constant.dim() == 2 else constant + constant
        dim = self._draws.below(max(constant.dim(), 1))
        rows = [1 if d == dim else n for d, n in enumerate(constant.shape)]
        if self._draws.chance(15) and rows:
            at = self._draws.below(len(rows))
            rows[at] = self._draws.between(0, constant.shape[at])
        index = torch.zeros(rows, dtype=torch.int64)
        index += torch.arange(index.numel()).view(rows) % max([1, *constant.shape[dim : dim + 1]])
        if index.dim() > 1 and self._draws.chance(30):
            index = index.transpose(0, -1).contiguous().transpose(0, -1)
        value = self._draws.of([n for n in VALUES if n != -1 or constant.dtype != torch.uint8])
        made = aten.scatter.value(constant, self._dim(constant.dim(), dim), index, value)
        return [made, torch.signbit(made) if made.dtype.is_floating_point else made]

    def _neutral(self) -> list[Tensor]:
        x = self._any()
        if x.dtype == torch.bool:
            return [x.sin()]
        shape = list(x.shape)
        if self._draws.chance(15):
            shape = [2, *shape]
        constant = self._constant(shape, self._draws.of([x.dtype, x.dtype, *DTYPES]))
        if self._draws.chance(20):
            constant = self._draws.of([lambda t: t.to(x.dtype), aten.neg.default, lambda t: t + 1])(  # type: ignore[operator]
                constant.to(x.dtype)
            )
        op = self._draws.of([aten.add.Tensor, aten.mul.Tensor, aten.sub.Tensor, aten.div.Tensor])
        if self._draws.chance(30):
            made = op(x, self._draws.of([0, 1, 0.0, 1.0, -0.0, True]))
            return [made, torch.signbit(made) if made.dtype.is_floating_point else made]
        pair = (constant, x) if self._draws.chance(25) else (x, constant)
        if op is aten.sub.Tensor and torch.bool in (pair[0].dtype, pair[1].dtype):
            return []
        made = op(*pair)
        signs = [torch.signbit(made)] if made.dtype.is_floating_point else []
        return [made, *signs]

    def _view(self) -> list[Tensor]:
        x = self._any()
        views: list[Callable[[Tensor], Tensor]] = [torch.sin, lambda t: t.clone(), lambda t: t * 2]
        if x.dim() == 2:
            views += [torch.t, lambda t: t.reshape(-1)]
            views += [
                lambda t: aten.as_strided.default(t, [2], [1], 1),
                lambda t: aten.slice.Tensor(t, 1, 1, 99),
            ]
        if x.dim() > 0:
            views += [lambda t: t.unsqueeze(0), lambda t: t.expand(2, *t.shape)]
        return [self._draws.of(views)(x)]

    def _no_op(self) -> list[Tensor]:
        x = self._any()
        ops: list[Callable[[Tensor], Any]] = [
            aten.clone.default,
            aten.alias.default,
            lambda t: prims.convert_element_type.default(t, t.dtype),
            lambda t: aten.cat.default([t]) if t.dim() else t.sin(),
            lambda t: aten.slice.Tensor(t, 0, 0, 99) if t.dim() else t.cos(),
        ]
        return [self._draws.of(ops)(x)]

    def _write(self) -> list[Tensor]:
        """Write a value, which may be an input, a view or a constant."""
        x = self._any()
        strides = [s for n, s in zip(x.shape, x.stride(), strict=True) if n > 1]
        if 0 not in strides and x.dtype != torch.bool:
            source = self._draws.of([t for t in self._values if t.shape == x.shape])
            aten.copy_.default(x, source + 1 if source.dtype != torch.bool else source)
        return []


def inputs() -> list[Tensor]:
    """Return tensors with odd numbers; the last two share storage."""
    odd = torch.tensor([[-0.0, 0.0, 1.5, float("nan"), 3], [float("inf"), -2, 0.25, -0.0, 7]])
    turned, whole = torch.arange(6.0).reshape(3, 2).half().t(), torch.arange(24.0).reshape(4, 6)
    return [odd, torch.arange(10).reshape(2, 5), turned, whole[:2, :5], whole[2:, 1:]]
