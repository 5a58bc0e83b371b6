"""``METRIC:LIMIT``."""

from __future__ import annotations

import pytest

from pytest_reinplace.compare.limit import exact, limit


@pytest.mark.parametrize(
    ("text", "old", "fits", "exceeds"),
    [
        ("clones:0", 3, 3, 4),
        ("clones:2", 3, 5, 6),
        ("clones:50%", 4, 6, 7),
        ("new_clones:0", 0, 0, 1),
        ("new_clones:2", 0, 2, 3),
        ("removed_tests:1", 0, 1, 2),
        ("clone_bytes:0", 0, 0, 1),
        ("clone_bytes:4KiB", 10, 4106, 4107),
        ("clone_bytes:1.5MiB", 0, 1572864, 1572865),
        ("peak_bytes:1%", 1000, 1010, 1011),
        ("peak_bytes:0.1%", 2**62, 2**62 + 2**62 // 1000, 2**62 + 2**62 // 1000 + 1),
        ("peak_bytes:5%", 0, 0, 1),
        ("peak_bytes:10B", 5, 15, 16),
        ("runtime:5%", 1.0, 1.0499, 1.0501),
    ],
)
def test_a_limit_holds_up_to_its_edge(text: str, old: float, fits: float, exceeds: float) -> None:
    found = limit(text)
    assert not found.is_exceeded(old, fits)
    assert not found.is_exceeded(old, 0)
    assert found.is_exceeded(old, exceeds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clones", "expected METRIC:LIMIT, as in clone_bytes:0, got 'clones'"),
        ("clone:0", "no metric is called 'clone': did you mean 'clones'"),
        (
            "memory:0",
            "no metric is called 'memory'; valid are 'clones', 'new_clones', 'clone_bytes', 'peak_bytes'",
        ),
        ("clones:1KiB", "expected clones to be limited by a whole number"),
        ("clones:1.5", "expected clones to be limited by a whole number"),
        ("new_clones:5%", r"expected new_clones to be limited by a whole number \(new_clones:0\), got"),
        (
            "removed_tests:5%",
            r"expected removed_tests to be limited by a whole number \(removed_tests:0\), got",
        ),
        ("new_clones:0.5", "expected new_clones to be limited by a whole number"),
        ("new_clones:1KiB", "expected new_clones to be limited by a whole number"),
        ("clone_bytes:1.5", "expected clone_bytes to be limited by bytes"),
        (
            "clone_bytes:4KB",
            r"expected clone_bytes to be limited by bytes \(.*clone_bytes:4MiB\)",
        ),
        ("peak_bytes:-1", "expected peak_bytes"),
        ("peak_bytes:", "expected peak_bytes"),
        ("peak_bytes:1e3", "expected peak_bytes"),
        ("peak_bytes:٣", "expected peak_bytes"),
        ("runtime:5", "expected runtime to be limited by a percentage"),
        ("runtime:5ms", "expected runtime to be limited by a percentage"),
        ("clones:" + "9" * 10_000, "expected clones"),
        ("\x1b[31m:0", r"no metric is called '\\\\x1b\[31m'"),
    ],
)
def test_anything_else_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        limit(text)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


def test_where_nothing_is_said_nothing_may_grow() -> None:
    assert [(one.text, one.required) for one in exact()] == [
        ("clones:0", True),
        ("new_clones:0", True),
        ("clone_bytes:0", True),
        ("peak_bytes:0", False),
    ]
