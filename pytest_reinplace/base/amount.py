"""Bytes as people write them: ``4096``, ``"4KiB"``, ``"1.5 MiB"``."""

from __future__ import annotations

import re
from fractions import Fraction

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_TEXT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([A-Za-z]*)", re.ASCII)


def in_bytes(value: object) -> int:
    """Return a number of bytes; a text without a unit is bytes.

    Raises:
        ValueError: it is none; says what was expected.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _TEXT.fullmatch(value) if isinstance(value, str) else None
    size = Fraction(found[1]) * UNITS.get(found[2] or "B", 0) if found else Fraction(1, 2)
    if size.denominator != 1 or (found and found[2] and found[2] not in UNITS):
        units = ", ".join(UNITS)
        raise ValueError(f"expected bytes, as 4096 or '4KiB' (units: {units}), got {value!r}")
    return int(size)
