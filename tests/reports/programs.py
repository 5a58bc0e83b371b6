"""One or more programs for each public report of PyTorch, written from the report's one line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from . import operators as ops

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True)
class Program:
    """A program that torch.compile has to get right.

    Args:
        report: the number of the report in pytorch/pytorch.
        fn: the program.
        inputs: makes fresh arguments, with whatever storage they share.
        missed: the size in bytes from which on no copy may be left; 0 where the report is about wrong
            results only.
        triton: whether it launches a Triton kernel.
    """

    report: int
    fn: Callable[..., Any]
    inputs: Callable[[], list[Any]]
    missed: int = 0
    triton: bool = False

    def arguments(self) -> list[Any]:
        """Return fresh arguments where the program can run: Triton's go to the GPU where there is one."""
        if self.triton and torch.cuda.is_available():
            return [value.cuda() for value in self.inputs()]
        return self.inputs()

    def __str__(self) -> str:
        return f"{self.report}-{self.fn.__name__}"


def ints(*shape: int, start: int = 1) -> Tensor:
    """Return small distinct floats, on which sums and products are exact."""
    count = 1
    for n in shape:
        count *= n
    return torch.arange(start, start + count, dtype=torch.float32).reshape(shape)


def index(*values: int) -> Tensor:
    return torch.tensor(values)


# 198031: y = x.clone(); op(y, x) becomes op(x, x)


def clone_then_op(x: Tensor) -> Tensor:
    y = x.clone()
    ops.add_to(y, x)
    return y


def clone_of_intermediate(x: Tensor) -> tuple[Tensor, Tensor]:
    a = x * 2
    b = a.clone()
    ops.add_to(b, a)
    return a, b


def clone_last_use(x: Tensor) -> Tensor:
    a = x @ x.t()
    b = a.clone()
    ops.add_to(b, a)
    return b + 1


def clone_of_view(x: Tensor) -> Tensor:
    a = x + 1
    b = a[1:].clone()
    ops.add_to(b, a[1:])
    return b


def clone_then_triton(x: Tensor) -> Tensor:
    from .kernels import add_to

    a = x * 2
    b = a.clone()
    add_to(b, a)
    return b


# 197829: x[1:] = x[:-1].clone() copies over itself


def shift_down(x: Tensor) -> None:
    x[1:] = x[:-1].clone()


def shift_up(x: Tensor) -> Tensor:
    x[:-1] = x[1:].clone()
    return x.sum()


def shift_columns(x: Tensor) -> Tensor:
    y = x + 1
    y[:, 1:] = y[:, :-1].clone()
    return y


def swap_halves(x: Tensor) -> None:
    half = x.shape[0] // 2
    first = x[:half].clone()
    x[:half] = x[half:]
    x[half:] = first


# 198094: y = slice_scatter(x, ...); x.zero_(); return y returns zeros


def scatter_then_zero(x: Tensor, v: Tensor) -> Tensor:
    y = torch.slice_scatter(x, v, 0, 0, 2)
    x.zero_()
    return y


def select_scatter_then_fill(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.select_scatter(x, v[0], 0, 1)
    x.fill_(7)
    return y, y + x


def index_put_then_zero(x: Tensor, v: Tensor) -> Tensor:
    y = torch.index_put(x, [index(0, 2)], v)
    x.zero_()
    return y


def diagonal_scatter_then_copy(x: Tensor, v: Tensor) -> Tensor:
    y = torch.diagonal_scatter(x, v)
    x.copy_(x.flip(0))
    return y


# 198131: dst[:] = src[:]; src.add_(1) copies the updated source


def copy_then_update(dst: Tensor, src: Tensor) -> None:
    dst[:] = src[:]
    src.add_(1)


def copy_part_then_update(dst: Tensor, src: Tensor) -> Tensor:
    dst[1:] = src[1:]
    src.mul_(2)
    return dst + src


def exchange(dst: Tensor, src: Tensor) -> None:
    old = dst.clone()
    dst.copy_(src)
    src.copy_(old)


def copy_then_op(dst: Tensor, src: Tensor) -> None:
    dst.copy_(src)
    ops.bump(src)


def elementwise_then_op(dst: Tensor, src: Tensor) -> None:
    scaled = src * 2 + 1
    first = src[0, 0] * 3
    ops.bump(src)
    dst.copy_(scaled.t().contiguous().t() + first)


# 195451: a returned scatter shares storage with the input it was copied into


def returned_scatter(x: Tensor, v: Tensor) -> Tensor:
    y = torch.slice_scatter(x, v, 0, 0, 2)
    x.copy_(y)
    return y


def returned_index_put(x: Tensor, v: Tensor) -> Tensor:
    y = torch.index_put(x, [index(1, 3)], v)
    x.copy_(y)
    return y


def returned_row(x: Tensor, v: Tensor) -> Tensor:
    y = torch.slice_scatter(x, v, 0, 0, 2)
    x.copy_(y)
    return y[1]


def returned_twice(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.slice_scatter(x, v, 0, 1, 3)
    x.copy_(y)
    return y, y.view(-1)


# 156786: index_copy that reads its own self


def index_copy_of_itself(x: Tensor) -> Tensor:
    y = x * 2
    return torch.index_copy(y, 0, index(2, 3), y[1:3])


def index_copy_flipped(x: Tensor) -> Tensor:
    y = x + 1
    return y.index_copy(0, index(0, 1, 2, 3), y.flip(0))


def index_copy_back(x: Tensor) -> None:
    x.copy_(torch.index_copy(x, 0, index(1, 2), x[0:2]))


# 198033: a foreach op that reads a flipped self


def foreach_flipped(x: Tensor, y: Tensor) -> None:
    torch._foreach_add_([x, y], [x.flip(0), y.flip(0)])


def foreach_transposed(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x + 1, y + 1
    torch._foreach_mul_([a, b], [a.flip(0), b.flip(0)])
    return a, b


def foreach_crossed(x: Tensor, y: Tensor) -> None:
    torch._foreach_add_([x, y], [y.flip(0), x.flip(0)])


# 153389: two aliased inputs mutated, then read


def two_mutated(x: Tensor, y: Tensor) -> Tensor:
    x.add_(1)
    y.mul_(2)
    return x + y


def two_by_op(x: Tensor, y: Tensor) -> Tensor:
    ops.bump(x)
    ops.bump(y)
    return x.sum() + y.sum()


# 132196: one op that mutates several inputs, given aliases


def both_same(x: Tensor) -> Tensor:
    y = x + 1
    ops.both(y, y)
    return y


def both_same_input(x: Tensor) -> None:
    ops.both(x, x)


def both_overlapping(x: Tensor) -> None:
    ops.both(x, x[1])


def both_disjoint(x: Tensor) -> Tensor:
    y = x * 2
    ops.both(y[0], y[1])
    return y


# 197408: an op on a dtype view, then a scatter


def dtype_view_then_scatter(x: Tensor) -> Tensor:
    y = x + 1
    ops.bump(y.view(torch.int32))
    y[:2] = 5
    return y


def dtype_view_of_input(x: Tensor, v: Tensor) -> None:
    ops.bump(x.view(torch.int32))
    x[:2] = v


def dtype_view_of_slice(x: Tensor, v: Tensor) -> Tensor:
    part = x[1:3]
    ops.bump(part.view(torch.int16))
    x[2:4] = v
    return x.sum(1)


# 195285: a slice write and then an index_put keep a full buffer


def slice_then_index_put(buffer: Tensor, v: Tensor, i: Tensor, w: Tensor) -> None:
    buffer[:, :4] = v
    buffer[i] = w


def slice_then_index_put_of_fresh(x: Tensor, v: Tensor, i: Tensor, w: Tensor) -> Tensor:
    buffer = torch.zeros_like(x)
    buffer[2:6] = w[0]
    buffer[i] = w
    return buffer


def index_put_then_slice(buffer: Tensor, v: Tensor, i: Tensor, w: Tensor) -> None:
    buffer[i] = w
    buffer[1:3, 4:] = 0


# 139628: two pools in one allocation: the whole base is cloned


def two_pools(pool: Tensor, new: Tensor, slot: Tensor) -> None:
    ops.store(pool[0], pool[1], new, slot)


def two_pools_unbound(pool: Tensor, new: Tensor, slot: Tensor) -> Tensor:
    keys, values = pool.unbind(0)
    ops.store(keys, values, new, slot)
    return keys[0] + values[1]


def two_pools_split(pool: Tensor, new: Tensor, slot: Tensor) -> None:
    flat = pool.view(2 * pool.shape[1], pool.shape[2])
    keys, values = flat.split(pool.shape[1], 0)
    ops.store(keys, values, new, slot)


# 197432: v2's copy-back left in the graph


def op_on_flat_view(x: Tensor) -> None:
    ops.bump(x.view(-1))


def op_on_slice_then_read(x: Tensor) -> Tensor:
    ops.bump(x[:, 1:])
    return x.sum()


def op_on_two_views(x: Tensor) -> None:
    ops.bump(x[:3])
    ops.bump(x[3:])


# 131192, 132995: an op on a view of an input


def op_on_row(x: Tensor) -> Tensor:
    ops.bump(x[0])
    return x[1] * 2


def op_on_transposed(x: Tensor) -> None:
    ops.bump(x.t())


def op_on_nested_view(x: Tensor, y: Tensor) -> None:
    ops.add_to(x.view(2, -1, x.shape[1])[1], y)


# 184542: buf.view(-1)[idx] = v


def flat_index_put(buffer: Tensor, i: Tensor, v: Tensor) -> None:
    buffer.view(-1)[i] = v


def flat_index_put_of_fresh(buffer: Tensor, i: Tensor, v: Tensor) -> Tensor:
    fresh = torch.zeros_like(buffer)
    fresh.view(-1)[i] = v
    return fresh


def paged_index_put(buffer: Tensor, i: Tensor, v: Tensor) -> None:
    buffer.view(2, -1)[:, i % 3] = v[:2].unsqueeze(1)


# 144072: a mutable Tensor[]? that is None


def none_list(x: Tensor) -> Tensor:
    y = x + 1
    ops.nullable(None, y)
    return y


def none_list_on_input(x: Tensor) -> None:
    ops.nullable(None, x)


def some_list(x: Tensor) -> Tensor:
    y = x + 1
    ops.nullable([x, y[0]], y[1])
    return y


def _alias_of(make: Callable[[Tensor], list[Any]]) -> Callable[[], list[Any]]:
    return lambda: make(ints(6, 4))


_INPUTS: dict[str, Callable[[], list[Any]]] = {
    "one": lambda: [ints(6, 4)],
    "flat": lambda: [ints(24)],
    "part": lambda: [ints(4, 4), ints(2, 4, start=90)],
    "two": lambda: [ints(6, 4), ints(6, 4, start=50)],
    "buffer": lambda: [ints(8, 8), ints(8, 4, start=200), index(5, 0), ints(2, 8, start=300)],
    "pool": lambda: [ints(2, 8, 4), ints(2, 4, start=100), index(6, 1)],
    "scattered": lambda: [ints(6, 8), index(7, 30, 2), ints(3, start=100)],
}

PROGRAMS = (
    *(Program(198031, f, _INPUTS["one"]) for f in (clone_then_op, clone_of_intermediate, clone_last_use)),
    Program(198031, clone_of_view, _INPUTS["one"]),
    Program(198031, clone_then_triton, _INPUTS["flat"], triton=True),
    *(Program(197829, f, _INPUTS["one"]) for f in (shift_down, shift_up, shift_columns, swap_halves)),
    Program(197829, shift_down, _INPUTS["flat"]),
    *(Program(198094, f, _INPUTS["part"]) for f in (scatter_then_zero, select_scatter_then_fill)),
    Program(198094, index_put_then_zero, _INPUTS["part"]),
    Program(198094, diagonal_scatter_then_copy, lambda: [ints(4, 4), ints(4, start=90)]),
    *(Program(198131, f, _INPUTS["two"]) for f in (copy_then_update, copy_part_then_update, exchange)),
    *(Program(198131, f, _INPUTS["two"]) for f in (copy_then_op, elementwise_then_op)),
    *(Program(195451, f, _INPUTS["part"]) for f in (returned_scatter, returned_index_put)),
    *(Program(195451, f, _INPUTS["part"]) for f in (returned_row, returned_twice)),
    *(
        Program(156786, f, lambda: [ints(4, 3)])
        for f in (index_copy_of_itself, index_copy_flipped, index_copy_back)
    ),
    *(Program(198033, f, _INPUTS["two"]) for f in (foreach_flipped, foreach_transposed, foreach_crossed)),
    Program(153389, two_mutated, _alias_of(lambda x: [x, x])),
    Program(153389, two_mutated, _alias_of(lambda x: [x[:4], x[2:]])),
    Program(153389, two_by_op, _alias_of(lambda x: [x, x])),
    Program(153389, two_by_op, _alias_of(lambda x: [x[:4], x[2:]])),
    Program(132196, both_same, _INPUTS["one"]),
    *(Program(132196, f, _INPUTS["one"]) for f in (both_same_input, both_overlapping, both_disjoint)),
    Program(197408, dtype_view_then_scatter, _INPUTS["one"]),
    *(
        Program(197408, f, lambda: [ints(4, 4), ints(2, 4, start=70)])
        for f in (dtype_view_of_input, dtype_view_of_slice)
    ),
    *(Program(195285, f, _INPUTS["buffer"], 8 * 8 * 4) for f in (slice_then_index_put, index_put_then_slice)),
    Program(195285, slice_then_index_put_of_fresh, _INPUTS["buffer"], 8 * 8 * 4),
    *(
        Program(139628, f, _INPUTS["pool"], 8 * 4 * 4)
        for f in (two_pools, two_pools_unbound, two_pools_split)
    ),
    *(
        Program(197432, f, _INPUTS["one"], 6 * 4 * 4)
        for f in (op_on_flat_view, op_on_slice_then_read, op_on_two_views)
    ),
    Program(131192, op_on_row, _INPUTS["one"], 4 * 4),
    Program(132995, op_on_transposed, _INPUTS["one"], 6 * 4 * 4),
    Program(132995, op_on_nested_view, lambda: [ints(6, 4), ints(3, 4, start=60)], 3 * 4 * 4),
    *(
        Program(184542, f, _INPUTS["scattered"], 6 * 8 * 4)
        for f in (flat_index_put, flat_index_put_of_fresh, paged_index_put)
    ),
    *(Program(144072, f, _INPUTS["one"]) for f in (none_list, none_list_on_input, some_list)),
)
