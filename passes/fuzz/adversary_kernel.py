"""A Triton kernel that punishes a wrong decision: it writes first, and only then reads what else it got.

Importing this needs triton; running it a device for it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_BLOCK = 32


@triton.jit  # type: ignore[untyped-decorator]
def _stir(x, other, n, x_stride, other_stride, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    inside = at < n
    tl.store(x + at * x_stride, tl.load(x + at * x_stride, mask=inside) * 3 + 1, mask=inside)
    tl.debug_barrier()
    mixed = tl.load(x + at * x_stride, mask=inside) + tl.load(other + at * other_stride, mask=inside)
    tl.store(x + at * x_stride, mixed, mask=inside)


def stir(x: torch.Tensor, other: torch.Tensor) -> None:
    """Write into ``x`` three times what it holds, and one, and add ``other``, element by element.

    Args:
        x: one dimension of at most 32 elements, of any stride.
        other: the same, with at least as many elements; what it holds is read after ``x`` was written.
    """
    _stir[(1,)](x, other, x.numel(), x.stride(0), other.stride(0), BLOCK=_BLOCK)
