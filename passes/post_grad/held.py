"""What a tensor holds where a number is stored into it."""

from __future__ import annotations

import math
import struct

import torch


def held(value: object, dtype: torch.dtype) -> bool | int | float | None:
    """Return what a tensor holds where a number is stored into it, ``None`` where that is not known.

    A float is rounded when it is stored, and returned as it is.
    """
    if not isinstance(value, bool | int | float) or dtype.is_complex:
        return None
    if dtype == torch.bool:
        return bool(value)
    if dtype.is_floating_point:
        is_small = not math.isfinite(value) or abs(value) <= torch.finfo(dtype).max
        return value if is_small else None
    if not math.isfinite(value):
        return None
    whole, info = math.trunc(value), torch.iinfo(dtype)
    if info.min == 0 and -info.max <= whole < 0 and whole == value:
        whole += info.max + 1  # as torch fills unsigned numbers
    return whole if info.min <= whole <= info.max else None


def rounded(value: float, dtype: torch.dtype) -> float | None:
    """Return the number that a floating-point dtype holds of one, ``None`` where that is not known.

    Args:
        value: a number that ``held`` knows.
        dtype: the dtype; torch rounds to those of two bytes by way of ``float32``.
    """
    if isinstance(value, int) and abs(value) > 1 << 53:  # it is no float itself
        return None
    if dtype == torch.float64 or not math.isfinite(value):
        return float(value)
    (single,) = struct.unpack("<f", struct.pack("<f", value))
    if dtype == torch.float16:
        (half,) = struct.unpack("<e", struct.pack("<e", single))
        return float(half)
    if dtype == torch.bfloat16:  # the upper half of the bits, rounded to even
        (bits,) = struct.unpack("<I", struct.pack("<f", single))
        bits += 0x7FFF + (bits >> 16 & 1)
        (single,) = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))
        return float(single)
    return float(single) if dtype == torch.float32 else None
