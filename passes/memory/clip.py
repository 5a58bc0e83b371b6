"""The part of a region that can share bytes with another one: rows that lie outside are left out."""

from __future__ import annotations

from .geometry import Geometry
from .region import Region


def clipped(geometry: Geometry, region: Region, window: Region) -> Region:
    """Return a part of a region that holds every byte that it shares with a window.

    The part may hold more; of what is not static, and where nothing is shared, it is the whole region.
    """
    if not (region.static and window.static):
        return region
    frame = geometry.axes(window)
    pairs = list(zip(region.sizes, region.strides, strict=True))
    if frame.empty or any(n == 0 for n, _ in pairs):
        return region
    offset, sizes = region.offset, list(region.sizes)
    rest = region.itemsize + sum((n - 1) * s for n, s in pairs)  # bytes from the first to the last
    for axis in sorted(range(len(sizes)), key=lambda i: -region.strides[i]):
        stride = region.strides[axis]
        if stride == 0 or sizes[axis] == 1:
            continue
        rest -= (sizes[axis] - 1) * stride
        first = max(0, -((offset + rest - 1 - frame.offset) // stride))
        last = min(sizes[axis] - 1, (frame.offset + frame.span - 1 - offset) // stride)
        if first > last:
            return region
        offset, sizes[axis] = offset + first * stride, last - first + 1
        if first < last:
            break  # further in, the rows begin at more than one place
    return region._replace(offset=offset, sizes=tuple(sizes))
