"""Bytes as people write them."""

from __future__ import annotations

import pytest

from pytest_reinplace.base.amount import in_bytes


@pytest.mark.parametrize(
    ("value", "count"),
    [(0, 0), (4096, 4096), ("17", 17), ("17B", 17), ("4KiB", 4096), ("1.5 MiB", 3 << 19), ("2GiB", 2 << 30)],
)
def test_bytes(value: object, count: int) -> None:
    assert in_bytes(value) == count


@pytest.mark.parametrize(
    "value", [-1, True, 1.0, None, "", "KiB", "4kb", "4KB", "-4KiB", "0.3B", "4 KiB x", "\u0661"]
)
def test_what_is_none_is_refused(value: object) -> None:
    with pytest.raises(
        ValueError, match=r"expected bytes, as 4096 or '4KiB' \(units: B, KiB, MiB, GiB\), got "
    ):
        in_bytes(value)
