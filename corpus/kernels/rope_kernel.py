"""The kernel of :mod:`.rope`, apart because its import needs Triton."""

import triton
import triton.language as tl


@triton.jit
def rotate(  # type: ignore[no-untyped-def]
    query_ptr,
    key_ptr,
    cos_ptr,
    sin_ptr,
    stride,
    heads,
    kv_heads,
    half,
    BLOCK_HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Rotate all heads of one token in place; rows of query and key are ``stride`` elements apart."""
    token = tl.program_id(0)
    head = tl.arange(0, BLOCK_HEADS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = column < half
    cos = tl.load(cos_ptr + token * half + column, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + token * half + column, mask=inside, other=0.0).to(tl.float32)
    offset = token * stride + head * 2 * half + column

    mask = inside & (head < heads)
    first = tl.load(query_ptr + offset, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(query_ptr + offset + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(query_ptr + offset, first * cos - second * sin, mask=mask)
    tl.store(query_ptr + offset + half, second * cos + first * sin, mask=mask)

    mask = inside & (head < kv_heads)
    first = tl.load(key_ptr + offset, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(key_ptr + offset + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(key_ptr + offset, first * cos - second * sin, mask=mask)
    tl.store(key_ptr + offset + half, second * cos + first * sin, mask=mask)
