"""What tables show of a measurement: a row for each side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..base.fit import aligned
from ..compare.figure import shown
from ..record.figures import EAGER, STOCK, Measurement
from ..record.paired import ratio

_BOUND = ("bound", "over")
_COLUMNS = (
    *("side", "clones", "clone bytes", "peak", *_BOUND),
    *("runtime", "beside", "moves", "least", "of copy", "compile"),
)


def columns(found: Iterable[Measurement]) -> tuple[str, ...]:
    """Return the heads of a table of measurements; a lower bound has columns only where one is known."""
    is_known = any(one.tested.lower_bound is not None for one in found)
    return tuple(name for name in _COLUMNS if is_known or name not in _BOUND)


def rows(found: Measurement, heads: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each side under these heads: eager, Inductor's pass, the pass under test.

    ``bound`` is the least that the programs must hold at some time, and ``over`` the peak by it;
    ``beside`` is the runtime by that of Inductor's pass in the same rounds, with the bounds that are sure;
    ``moves`` what Inductor counts that its kernels read and write, ``least`` what the program has to, and
    ``of copy`` which fraction of a plain copy's bandwidth the former is.
    """
    for name in filter(found.sides.__contains__, dict.fromkeys((EAGER, STOCK, found.pass_name))):
        side, fraction = found.sides[name], found.bandwidth_fraction(name)
        cells = {
            "side": name,
            "clones": "-" if side.clones is None else str(side.clones),
            "clone bytes": _bytes(side.clone_bytes),
            "peak": _bytes(side.peak_bytes),
            "bound": _bytes(side.lower_bound),
            "over": "-" if side.over_bound is None else f"{side.over_bound:.2f}",
            "runtime": "-" if side.runtime is None else shown("runtime", side.runtime),
            "beside": _beside(found, name),
            "moves": _bytes(side.moved_bytes),
            "least": _bytes(side.least_bytes),
            "of copy": "-" if fraction is None else f"{100 * fraction:.0f} %",
            "compile": "-" if side.compile_seconds is None else f"{side.compile_seconds:.1f} s",
        }
        yield tuple(cells[head] for head in heads)


def _bytes(figure: int | None) -> str:
    return "-" if figure is None else shown("peak_bytes", figure)


def _beside(found: Measurement, name: str) -> str:
    stock = found.sides.get(STOCK)
    times = ratio(found.sides[name].times, stock.times) if stock and name != STOCK else None
    return "-" if times is None else f"{times.median:.3f} ({times.low:.3f}-{times.high:.3f})"


def lines(found: Measurement) -> Iterator[str]:
    """Yield the table as text, aligned."""
    heads = columns([found])
    for row in aligned([heads, *rows(found, heads)]):
        yield "  ".join(row)
