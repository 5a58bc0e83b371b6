"""The squarified treemap: areas are as sizes, boxes fill the room, and are as square as in the paper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_reinplace.reports.html.treemap import Box, squarified


def test_it_is_the_example_of_the_paper() -> None:
    # Bruls, Huizing and van Wijk, figure 2: 6, 6, 4, 3, 2, 2, 1 in a room of 6 by 4
    found = squarified([6, 6, 4, 3, 2, 2, 1], Box(0, 0, 6, 4))
    assert [tuple(round(n, 2) for n in box) for box in found] == [
        (0, 0, 3, 2),
        (0, 2, 3, 2),
        (3, 0, 1.71, 2.33),
        (4.71, 0, 1.29, 2.33),
        (3, 2.33, 1.2, 1.67),
        (4.2, 2.33, 1.2, 1.67),
        (5.4, 2.33, 0.6, 1.67),
    ]


@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=40),
    st.floats(0.1, 10),
    st.floats(0.1, 10),
)
def test_boxes_have_their_areas_and_do_not_meet(sizes: list[int], width: float, height: float) -> None:
    sizes.sort(reverse=True)
    boxes = squarified(sizes, Box(1, 2, width, height))
    for size, box in zip(sizes, boxes, strict=True):
        assert box.width * box.height == pytest.approx(size / sum(sizes) * width * height, rel=1e-6)
        assert box.x >= 1 - 1e-6 and box.y >= 2 - 1e-6
        assert box.x + box.width <= 1 + width + 1e-6 and box.y + box.height <= 2 + height + 1e-6
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            along = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert min(across, along) < 1e-6


def test_none_is_no_box() -> None:
    assert squarified([], Box(0, 0, 1, 1)) == []
