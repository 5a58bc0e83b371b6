"""Programs that read one part of a buffer and store into another one, which no kernel may do side by side.

Inductor's scheduler puts some of them into one kernel. Each is there twice, as it may and as it may not be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from ..trace import arange, ops

aten = torch.ops.aten
Tensor = torch.Tensor
N, ROWS, SIDE = 96, 12, 24  # more than a vector holds: what one loads, it loads before it stores


class Program(NamedTuple):
    function: Callable[..., Any]
    inputs: Callable[[], tuple[Tensor, ...]]


PROGRAMS: dict[str, Program] = {}


def rows() -> tuple[Tensor, ...]:
    return arange(ROWS, 3), torch.tensor([3, 5]), arange(2, 3)


def vectors() -> tuple[Tensor, ...]:
    return arange(N), arange(N) + 5


def squares() -> tuple[Tensor, ...]:
    return arange(SIDE, SIDE), arange(SIDE, SIDE) + 5


def places() -> tuple[Tensor, ...]:
    return arange(N).long(), torch.tensor([0, 3, 5])


def of(inputs: Callable[[], tuple[Tensor, ...]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a program with what makes its inputs."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = Program(function, inputs)
        return function

    return register


# -- a reader, and a later store over what it reads ------------------------------------------------------


@of(vectors)
def shifted(x: Tensor, w: Tensor) -> Tensor:
    x[80:82] = 7
    z = x[0:40] + w[:40]
    x[1:41] = w[:40] * 3
    return z


@of(vectors)
def shifted_after_a_kernel(x: Tensor, w: Tensor) -> Tensor:
    ops.scale(x, w)
    z = x[0:40] + w[:40]
    x[1:41] = w[:40] * 3
    return z


@of(vectors)
def shifted_through_another_buffer(x: Tensor, w: Tensor) -> Tensor:
    """The reader is itself a store, elsewhere, which the second store reads."""
    y = w * 2
    ops.scale(y, w)
    x[80:82] = 7
    y[0:40] = x[0:40] + w[:40]
    x[1:41] = y[0:40] * 3
    return y


@of(squares)
def summed_by_columns(x: Tensor, w: Tensor) -> Tensor:
    x[0] = 7
    z = x.sum(0) + w[0]
    x[1:] = w[1:] * 3
    return z


@of(squares)
def turned(x: Tensor, w: Tensor) -> Tensor:
    x[0] = 7
    z = x[1:, 1:].t() + w[1:, 1:]
    x[1:, 1:] = w[1:, 1:] * 3
    return z


@of(vectors)
def one_row_of_many(x: Tensor, w: Tensor) -> Tensor:
    x[80:82] = 7
    z = (x[0:40] * 2)[None] + w[:40, None]
    part = z[:, 1]
    x[0:40] = w[:40] * 3
    return part + w[:40]


@of(vectors)
def same_elements(x: Tensor, w: Tensor) -> Tensor:
    x[80:82] = 7
    z = x[1:41] + w[:40]
    x[1:41] = w[:40] * 3
    return z


@of(vectors)
def other_bytes(x: Tensor, w: Tensor) -> Tensor:
    x[80:82] = 7
    z = x[41:81] + w[:40]
    x[1:41] = w[:40] * 3
    return z


@of(places)
def put_by_an_index(x: Tensor, i: Tensor) -> Tensor:
    x[80:82] = 7
    z = x[0:3] + i
    x[i] = i * 3
    return z


@of(places)
def put_by_a_range(x: Tensor, i: Tensor) -> Tensor:
    x[80:82] = 7
    z = x[0:3] + i
    x.index_put_((torch.arange(1, 4),), i * 3)
    return z


# -- a store of what is computed from other elements of the buffer ---------------------------------------


def shift(h: Tensor) -> Tensor:
    h[1:] = h[:-1].clone()
    return h


@of(rows)
def after_an_index_put(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    return shift(x.index_put((i,), v))


@of(rows)
def after_a_scatter_add(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    return shift(x.scatter_add(0, i[:, None].expand_as(v), v))


@of(rows)
def after_a_diagonal(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    return shift(torch.diagonal_scatter(x, v[0]))


@of(rows)
def twice_after_a_product(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    return shift(shift(x @ x[:3]))


@of(rows)
def transposed_into_itself(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    x[i] = v
    square = x[:3]
    square.copy_(square.t() * 2)
    return x.sum(0)


@of(rows)
def of_both_orders(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    x[i] = v
    twice = x[:3] * 2
    x[:3].copy_(twice.t() + twice)
    return x.sum(0)


@of(rows)
def put_by_rows(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    x[i] = 1.0
    x[torch.arange(ROWS).flip(0)] = x * 2
    return x.sum(0)


@of(rows)
def sums_of_other_rows(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    x[i] = v
    x[1:].sub_(x[:-1].sum(-1, keepdim=True))
    return x.sum(0)


@of(rows)
def sum_of_one_row(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    x[i] = v
    x.sub_(x[0].sum())
    return x.sum(0)


@of(rows)
def regrouped(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    x[i] = v
    x[:, :2].copy_((x.view(-1)[: ROWS * 2] * 2).view(ROWS, 2))
    return x.sum(0)


@of(rows)
def flipped_then_clamped(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    x[i] = v
    y = x + x.flip(0)
    x.clamp_(max=4)
    return y


def clamped_behind(x: Tensor) -> Tensor:
    y = x + x.flip(0)
    x.clamp_(max=4)
    return y


def table() -> tuple[Tensor, ...]:
    return (arange(2, 12).long(),)


@of(table)
def flipped_after_a_slice(x: Tensor) -> Tensor:
    x[0:1] = 7
    return clamped_behind(x)


def flipped_after_a_fill_of_columns(x: Tensor) -> Tensor:
    x[:, 2:8].index_fill_(0, torch.tensor([1]), 1)
    return clamped_behind(x)


if not torch.__version__.startswith("2.11."):  # whose AOTAutograd refuses it
    of(table)(flipped_after_a_fill_of_columns)


@of(table)
def flipped_after_a_store_of_columns(x: Tensor) -> Tensor:
    x[:, 2:8].fill_(1)
    return clamped_behind(x)


@of(table)
def flipped_after_a_scatter(x: Tensor) -> Tensor:
    x.scatter_(1, torch.tensor([[1], [3]]), 1)
    return clamped_behind(x)


@of(table)
def flipped_after_a_store_through_a_view(x: Tensor) -> Tensor:
    x.view(24)[torch.tensor([1])] = 7
    return clamped_behind(x)


@of(table)
def flipped_after_a_fill(x: Tensor) -> Tensor:
    x.index_fill_(0, torch.tensor([1]), 1)
    return clamped_behind(x)


@of(squares)
def flipped_by_columns(x: Tensor, w: Tensor) -> Tensor:
    x[0:1].mul_(2)
    y = x * x.flip(1)
    x.neg_()
    return y


@of(squares)
def another_one_flipped(x: Tensor, w: Tensor) -> Tensor:
    """What is read and what is stored is the same element: one kernel may do both."""
    x[0:1].mul_(2)
    y = x * w.flip(1)
    x.neg_()
    return y


@of(rows)
def reduced_by_a_kernel(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    x[i] = v
    x.index_reduce_(0, i, x[:2] * 2, "prod")
    return x.index_reduce_(0, i, x[1:3] * 2, "prod").sum(0)


# -- lists, stored element by element --------------------------------------------------------------------


@of(rows)
def halves_of_each_other(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    x[i] = v
    torch._foreach_add_([x[:6], x[6:]], [x[6:].clone(), x[:6].clone()])
    return x.sum(0)


@of(rows)
def halves_of_neighbours(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    torch._foreach_add_([x[1:7], x[7:]], [x[:6] * 3, x[6:11] * 3])
    return x.sum(0)


@of(rows)
def halves_of_themselves(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    torch._foreach_add_([x[:6], x[6:]], [x[:6] * 3, x[6:] * 3])
    return x.sum(0)


@of(vectors)
def lists_of_each_other(x: Tensor, y: Tensor) -> Tensor:
    made = torch._foreach_mul([x, y], 2)
    torch._foreach_add_([x, y], [made[1], made[0]])
    torch._foreach_add_([x, y], [y * 3, x * 3])
    return x + y


@of(vectors)
def a_list_that_is_stored_elsewhere(x: Tensor, y: Tensor) -> Tensor:
    x[40:42] = 1.0
    made, _ = torch._foreach_add([y[:20] * 2, y[20:40] * 2], [x[:20], x[20:40]])
    x[1:21].add_(made)
    return x + 1
