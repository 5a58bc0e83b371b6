"""The kernel of :mod:`.lora`, apart because its import needs Triton."""

import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((64, 2), (128, 4), (256, 4))
    ],
    key=["width"],
    restore_value=["output_ptr"],  # what is added to: each trial would add once more
)
@triton.jit
def expand(  # type: ignore[no-untyped-def]
    output_ptr,
    reduced_ptr,
    weights_ptr,
    adapters_ptr,
    output_stride,
    width,
    RANK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add to a part of one row of ``output`` the adapter's product of ``RANK`` reduced elements."""
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    rank = tl.arange(0, RANK)
    inside = column < width
    adapter = tl.load(adapters_ptr + row)
    reduced = tl.load(reduced_ptr + row * RANK + rank).to(tl.float32)
    offsets = adapter * width * RANK + column[:, None] * RANK + rank[None, :]
    weights = tl.load(weights_ptr + offsets, mask=inside[:, None], other=0.0).to(tl.float32)
    into = output_ptr + row * output_stride + column
    old = tl.load(into, mask=inside, other=0.0).to(tl.float32)
    tl.store(into, old + tl.sum(weights * reduced[None, :], axis=1), mask=inside)
