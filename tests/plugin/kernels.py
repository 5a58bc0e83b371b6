"""Triton kernels for the tests, in a module whose annotations are strings (the interpreter's weak spot)."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def double(x):
    return x * 2


@triton.jit
def add_(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """``x += 2 * y``: writes only x."""
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    total = tl.load(x_ptr + offset, mask=inside) + double(tl.load(y_ptr + offset, mask=inside))
    tl.store(x_ptr + offset, total, mask=inside)


@triton.jit
def center_(x_ptr, mean_ptr, width, BLOCK: tl.constexpr):
    """Subtract each row's mean from it and keep the mean: writes both, by way of ``tl.sum``."""
    row = tl.program_id(0)
    offset = tl.arange(0, BLOCK)
    inside = offset < width
    x = tl.load(x_ptr + row * width + offset, mask=inside, other=0.0)
    mean = tl.sum(x, axis=0) / width
    tl.store(mean_ptr + row, mean)
    tl.store(x_ptr + row * width + offset, x - mean, mask=inside)


@triton.jit
def biased_(x_ptr, bias_ptr, n, BLOCK: tl.constexpr):
    """``x *= 2``, and a bias is added where there is one."""
    offset = tl.arange(0, BLOCK)
    inside = offset < n
    x = tl.load(x_ptr + offset, mask=inside) * 2
    if bias_ptr is not None:
        x += tl.load(bias_ptr + offset, mask=inside)
    tl.store(x_ptr + offset, x, mask=inside)


@triton.jit
def scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    """``out = factor * x``, in a loop: writes only out."""
    for start in range(0, n, BLOCK):
        offset = start + tl.arange(0, BLOCK)
        inside = offset < n
        tl.store(out_ptr + offset, factor * tl.load(x_ptr + offset, mask=inside), mask=inside)


tuned_add_ = triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])(add_)


@triton.jit
def broken(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, 2 * BLOCK)))
