"""User Triton kernels for the reported programs; captured and run on the CPU where there is no GPU."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def add_shifted(out_ptr, in_ptr, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    """Write ``out[i] = 2 * out[i] + 1`` and then add ``in[i]``."""
    at = tl.arange(0, BLOCK)
    mask = at < n
    old = tl.load(out_ptr + at, mask=mask)
    tl.store(out_ptr + at, old * 2 + SHIFT, mask=mask)
    new = tl.load(out_ptr + at, mask=mask)
    other = tl.load(in_ptr + at, mask=mask)
    tl.store(out_ptr + at, new + other, mask=mask)


def add_to(out: torch.Tensor, other: torch.Tensor) -> None:
    """Launch :func:`add_shifted` on at most 64 elements."""
    add_shifted[(1,)](out, other, out.numel(), SHIFT=1, BLOCK=64)


@triton.jit
def add_spread(out_ptr, in_ptr, n, stride, BLOCK: tl.constexpr):
    """Write ``out[i] = 2 * out[i] + in[i]``, where ``out`` has gaps."""
    at = tl.arange(0, BLOCK)
    mask = at < n
    old = tl.load(out_ptr + at * stride, mask=mask)
    tl.store(out_ptr + at * stride, old * 2 + tl.load(in_ptr + at, mask=mask), mask=mask)


def add_to_column(out: torch.Tensor, other: torch.Tensor) -> None:
    """Launch :func:`add_spread` on at most 64 elements."""
    add_spread[(1,)](out, other, out.numel(), out.stride(0), BLOCK=64)
