"""Programs that need no copy, each beside its twin, which differs in that it has to keep some bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from ..trace import ops

Tensor = torch.Tensor
Function = Callable[..., list[Tensor]]
CHOSEN = torch.tensor([3, 5, 7])
Join = Callable[[Tensor, Tensor], Tensor]
FP8 = torch.float8_e4m3fn
SIDE = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """A program and its twin.

    Args:
        program: in terms of its inputs, which it may write.
        twin: of the same inputs.
        inputs: makes them; a backward follows where one asks for a gradient.
        kept: the bytes that the twin has to hold beside what the program holds.
    """

    program: Function
    twin: Function
    inputs: Callable[[], list[Any]]
    kept: int


@torch.library.custom_op("reinplace_test::sine", mutates_args=("result",))
def sine(x: Tensor, result: Tensor) -> None:
    """Write the sine of one tensor into another one, which may be the same."""
    torch.sin(x, out=result)


@torch.library.custom_op("reinplace_test::store_row", mutates_args=("cache",))
def store_row(cache: Tensor, value: Tensor, slot: int) -> None:
    """Write one row of a cache of 8-bit floats."""
    cache.view(torch.uint8)[slot].copy_(value.view(torch.uint8))


@torch.library.custom_op("reinplace_test::store_twice", mutates_args=("result",))
def store_twice(result: Tensor, x: Tensor) -> None:
    result.copy_(x).mul_(2)


def square(dtype: torch.dtype = torch.float32, side: int = SIDE) -> Tensor:
    return (torch.arange(side * side) % 97).to(dtype).view(side, side)


def trained() -> list[Tensor]:
    return [square().div(97).requires_grad_(), square().div(9700).requires_grad_(), square() + 1]


# -- caches and buffers that belong to the caller --------------------------------------------------------


def raised(tree: Tensor, node: Tensor, x: Tensor, join: Join) -> None:
    """A replay buffer: what is written comes from other places of the same buffer."""
    tree[node] = x
    for _ in range(3):
        node = node // 2
        tree[node] = join(tree[2 * node], tree[2 * node + 1])


def sum_tree(tree: Tensor, node: Tensor, x: Tensor) -> list[Tensor]:
    raised(tree, node, x, torch.add)
    return [tree[1] * 1]


def sum_tree_kept(tree: Tensor, node: Tensor, x: Tensor) -> list[Tensor]:
    old = tree.clone()
    return [old, *sum_tree(tree, node, x)]


def least_tree(tree: Tensor, node: Tensor, x: Tensor) -> list[Tensor]:
    raised(tree, node, x, torch.minimum)
    return [tree[1] * 3]


def least_tree_kept(tree: Tensor, node: Tensor, x: Tensor) -> list[Tensor]:
    old = tree * 1
    return [old, *least_tree(tree, node, x)]


def leaves() -> list[Tensor]:
    return [torch.zeros(1 << 10), torch.arange(16) * 31 + 512, torch.arange(16.0)]


def exchanged_channels(images: Tensor) -> list[Tensor]:
    """Red and blue."""
    images[:, [0, 2]] = images[:, [2, 0]]
    images.mul_(2)
    return [images.sum()]


def exchanged_channels_kept(images: Tensor) -> list[Tensor]:
    old = images.clone()
    return [*exchanged_channels(images), old]


def exchanged_rows(x: Tensor) -> list[Tensor]:
    x[[0, SIDE - 1]] = x[[SIDE - 1, 0]]
    x.t().add_(1)
    return [x.amax()]


def exchanged_rows_kept(x: Tensor) -> list[Tensor]:
    old = x.flip(0)
    return [*exchanged_rows(x), old]


def returned_views(x: Tensor) -> list[Tensor]:
    """AOTAutograd makes both anew from the input."""
    sine(x, x)
    return [x[:, :4], x.transpose(0, 1)]


def returned_copies(x: Tensor) -> list[Tensor]:
    sine(x, x)
    return [x[:, :4], x.transpose(0, 1).clone()]


def cache_slice(cache: Tensor, value: Tensor) -> list[Tensor]:
    """Decoding: one column is written, the filled part is returned."""
    cache[:, 3] = value[0]
    return [cache[:, :4]]


def cache_copy(cache: Tensor, value: Tensor) -> list[Tensor]:
    cache[:, 3] = value[0]
    return [cache[:, :4].clone()]


def cache_rows(cache: Tensor, value: Tensor) -> list[Tensor]:
    cache.index_copy_(0, torch.tensor([5, 2]), value[:2])
    return [cache[1:6].unsqueeze(0), cache]


def cache_rows_copied(cache: Tensor, value: Tensor) -> list[Tensor]:
    cache.index_copy_(0, torch.tensor([5, 2]), value[:2])
    return [cache[1:6].unsqueeze(0).clone(), cache]


# -- operators that write what they are given ------------------------------------------------------------


def read_and_written(x: Tensor, out: Tensor) -> list[Tensor]:
    """The user gives one tensor to both arguments of a call."""
    sine(x, out)
    sine(out, out)
    sine(out, out)
    return [out.sum()]


def read_before_written(x: Tensor, out: Tensor) -> list[Tensor]:
    old = out.clone()
    sine(x, out)
    sine(old, out)
    sine(out, out)
    return [out.sum() + old.sum()]


def bytes_as_floats(cache: Tensor, value: Tensor, slot: int) -> list[Tensor]:
    """pytorch 173781: a cache of 8-bit floats is kept as bytes."""
    store_row(cache.view(FP8), value, slot)
    return [cache.sum(dtype=torch.int64)]


def copied_bytes_as_floats(cache: Tensor, value: Tensor, slot: int) -> list[Tensor]:
    cache = cache.clone()
    store_row(cache.view(FP8), value, slot)
    return [cache.sum(dtype=torch.int64)]


def cache_of_bytes() -> list[Any]:
    return [square(torch.uint8), square()[1].to(FP8), 3]


def overlapping_rows(x: Tensor, w: Tensor) -> list[Tensor]:
    """What reads some rows comes before a store over others of them."""
    ops.scale(x, w)
    z = x[0:32] + w[:32]
    x[1:33] = w[:32] * 3
    return [z.sum()]


def overlapping_rows_kept(x: Tensor, w: Tensor) -> list[Tensor]:
    ops.scale(x, w)
    z = x.clone()
    x[1:33] = w[:32] * 3
    return [z, z[:32] + w[:32]]


def nested_parts(x: Tensor, w: Tensor) -> list[Tensor]:
    """A part of a part, stored by a kernel's result, of what an operator has written."""
    half = SIDE // 2
    y = x * 2
    ops.scale(y.t()[:half], w[0])
    y[half:, half:].add_(y[:half, :half] @ w[:half, :half])
    out = torch.empty_like(y)
    store_twice(out, y)
    return [out + y]


def nested_parts_kept(x: Tensor, w: Tensor) -> list[Tensor]:
    half = SIDE // 2
    y = x * 2
    old = y.clone()
    ops.scale(y.t()[:half], w[0])
    y[half:, half:].add_(y[:half, :half] @ w[:half, :half])
    out = torch.empty_like(y)
    store_twice(out, y)
    return [out + y, old]


# -- clones in training ----------------------------------------------------------------------------------


def clone_of_a_product(x: Tensor, w: Tensor, state: Tensor, *, is_written: bool = False) -> list[Tensor]:
    y = x * state.clone()
    for _ in range(3):
        y = (y @ w).clone().sin()
    if is_written:
        with torch.no_grad():
            state.add_(1)
    return [y.sum()]


def clone_in_a_chain(x: Tensor, w: Tensor, state: Tensor, *, is_written: bool = False) -> list[Tensor]:
    """All of it can be computed again in the backward."""
    y = x * w * state.clone()
    for _ in range(5):
        y = y.cos().clone().sin()
    if is_written:
        with torch.no_grad():
            state.add_(1)
    return [y]


def clone_used_twice(x: Tensor, w: Tensor, state: Tensor, *, is_written: bool = False) -> list[Tensor]:
    y = x * w
    z = y.clone()
    u = z.exp()
    v = u.clone() * y * state.clone()
    if is_written:
        with torch.no_grad():
            state.add_(1)
    return [v.cos().clone(), u.sum()]


def parts(x: Tensor) -> list[Tensor]:
    """Return rows of a buffer, as gradients in a bucket: of several sizes, so that no kernel computes all."""
    return [x[:9], x[9:32], x[32:33], x[33:]]


def clipped_parts(x: Tensor, y: Tensor) -> list[Tensor]:
    torch.ops.aten._foreach_mul_.Tensor(parts(x), (1 / y.norm()).clamp(max=1))
    return [y.sum()]


def roots_of_parts(x: Tensor, y: Tensor) -> list[Tensor]:
    torch._foreach_sqrt_(parts(x))
    torch._foreach_sub_(parts(x), parts(y))
    return [y.sum()]


def product_taken_away(x: Tensor, y: Tensor) -> list[Tensor]:
    x[8:].addmm_(y[8:], y, alpha=-1)
    return [x.sum()]


def running_sums(x: Tensor, y: Tensor) -> list[Tensor]:
    x.cumsum_(0)
    return [x.sum() + y.sum()]


def remembered(program: Function) -> Function:
    """Return a program that returns what its first input held, too."""

    def twin(x: Tensor, y: Tensor) -> list[Tensor]:
        old = x.clone()
        return [*program(x, y), old]

    return twin


def written(program: Function) -> Function:
    """Return a program that overwrites what the backward needs."""

    def twin(*inputs: Tensor) -> list[Tensor]:
        return program(*inputs, is_written=True)

    return twin


def rows_put(x: Tensor, y: Tensor) -> list[Tensor]:
    """What is put is computed of what it is put into, which is in memory nowhere else."""
    rows = torch.arange(0, SIDE, 2)
    z = x * 2
    z[rows] = z[rows.flip(0)] + y[rows]
    return [z]


def column_put(x: Tensor, y: Tensor) -> list[Tensor]:
    """Only data tell which rows are written, but they are those of another column than is read."""
    x[:, 1][CHOSEN] = x[:3, 0]
    x.select(1, 5).index_add_(0, CHOSEN, x[:3, 2])
    return [y.sum()]


def turned_rows_put(x: Tensor, y: Tensor) -> list[Tensor]:
    rows = torch.arange(0, SIDE, 2)
    z = (x * y).t()
    z[rows] = z[rows.flip(0)] * 3
    return [z]


def halves_counted(x: Tensor, y: Tensor) -> list[Tensor]:
    """A part of a view of another dtype is computed together with the rest."""
    x.view(torch.int16)[:, ::2] += 1
    return [x + y]


def one() -> list[Tensor]:
    return [square()]


def two() -> list[Tensor]:
    return [square(), square() + 7]


ALL = SIDE * SIDE * 4
PAIRS = (
    Pair(sum_tree, sum_tree_kept, leaves, 4096),
    Pair(least_tree, least_tree_kept, leaves, 4096),
    Pair(exchanged_channels, exchanged_channels_kept, lambda: [square().view(4, 4, 16, 16)], ALL // 2),
    Pair(exchanged_rows, exchanged_rows_kept, lambda: [square(torch.int32)], ALL),
    Pair(returned_views, returned_copies, one, ALL),
    Pair(cache_slice, cache_copy, two, SIDE * 4 * 4),
    Pair(cache_rows, cache_rows_copied, lambda: [square(torch.int64), square(torch.int64)], SIDE * 5 * 8),
    Pair(read_and_written, read_before_written, two, ALL),
    Pair(bytes_as_floats, copied_bytes_as_floats, cache_of_bytes, ALL // 4),
    Pair(overlapping_rows, overlapping_rows_kept, two, ALL),
    Pair(nested_parts, nested_parts_kept, two, ALL),
    *(Pair(p, remembered(p), two, ALL) for p in (product_taken_away, running_sums)),
    *(Pair(p, remembered(p), two, ALL) for p in (rows_put, turned_rows_put, column_put)),
    Pair(halves_counted, remembered(halves_counted), lambda: [square(torch.int32), square(torch.int32)], ALL),
    *(Pair(p, written(p), trained, ALL) for p in (clone_of_a_product, clone_in_a_chain, clone_used_twice)),
)
