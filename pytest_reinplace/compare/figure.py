"""How figures of a test are worded: with their unit, and how they changed."""

from __future__ import annotations

from ..base import wording

COUNTS, TIMES = ("clones", "copies", "pass_copies"), ("runtime", "pass_seconds")


def wording_of(metric: str) -> str:
    """Return a metric as a person says it."""
    return metric.replace("_", " ")


def shown(metric: str, figure: float) -> str:
    """Return a figure with its unit."""
    if metric in TIMES:
        return f"{figure * 1e3:.4g} ms"
    return f"{figure}" if metric in COUNTS else wording.bytes_of(int(figure)).partition(" (")[0]


def change(metric: str, old: float | None, new: float | None) -> str:
    """Return two figures, exactly where rounding would hide that they differ; one that is none is a dash."""
    before, now = ("-" if one is None else shown(metric, one) for one in (old, new))
    if old == new:
        return now
    if before == now:
        unit = " s" if metric in TIMES else " B"
        return f"{old}{unit} → {new}{unit}"
    return f"{before} → {now}"


def grown(metric: str, old: float, new: float) -> str:
    """Return how much a figure changed, exactly and relative to what it was: ``"+32 B, +100.0 %"``."""
    if metric in TIMES:
        exact = f"{(new - old) * 1e3:+.4g} ms"
    else:
        exact = f"{int(new - old):+d}" + ("" if metric in COUNTS else " B")
    return f"{exact}, {100 * (new - old) / old:+.1f} %" if old else exact
