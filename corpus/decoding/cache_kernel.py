"""The kernel of :mod:`.kv_cache`, apart because its import needs Triton."""

import triton
import triton.language as tl


@triton.jit
def store(  # type: ignore[no-untyped-def]
    key_ptr, value_ptr, keys_ptr, values_ptr, slots_ptr, key_stride, value_stride, width, BLOCK: tl.constexpr
):
    """Write one token's key and value, ``width`` elements each, into the slot that is its own."""
    token = tl.program_id(0)
    slot = tl.load(slots_ptr + token)
    column = tl.arange(0, BLOCK)
    inside = column < width
    key = tl.load(key_ptr + token * key_stride + column, mask=inside)
    value = tl.load(value_ptr + token * value_stride + column, mask=inside)
    tl.store(keys_ptr + slot * width + column, key, mask=inside)
    tl.store(values_ptr + slot * width + column, value, mask=inside)
