"""The kernel of :mod:`.rms_norm`, apart because its import needs Triton."""

import triton
import triton.language as tl


@triton.jit
def add_rms_norm(hidden_ptr, residual_ptr, weight_ptr, width, epsilon, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add a row of ``hidden`` to ``residual``, and write the norm of the sum into ``hidden``."""
    row = tl.program_id(0) * width
    column = tl.arange(0, BLOCK)
    inside = column < width
    hidden = tl.load(hidden_ptr + row + column, mask=inside, other=0.0).to(tl.float32)
    total = hidden + tl.load(residual_ptr + row + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual_ptr + row + column, total, mask=inside)
    scale = tl.rsqrt(tl.sum(total * total, axis=0) / width + epsilon)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(hidden_ptr + row + column, total * scale * weight, mask=inside)
